"""A serial plan as plain Python: what the verbs must do to order, states, head and run."""

from dataclasses import dataclass, field

from ordering.model import UNRESOLVED, After, Before, First, Last, Place, State

OUT = (State.DISPATCHED, State.RUNNING)
LINE = (State.WAITING, State.POSTPONED)


@dataclass
class Line:
    """`order` holds every unsettled item; the head may be a cancelled one whose body has not let go of the place."""

    halts: bool
    order: list[int] = field(default_factory=list)
    states: dict[int, State] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    delayed: set[int] = field(default_factory=set)
    head: int | None = None
    open: bool = False

    def which(self, *states: State) -> list[int]:
        return [each for each in self.order if self.states[each] in states]

    @property
    def waiting(self) -> list[int]:
        return self.which(State.WAITING)

    def insert(self, item: int, to: Place) -> None:
        match to:
            case Last():
                index = len(self.order)
            case First():
                index = self.order.index(self.waiting[0]) if self.waiting else len(self.order)
            case After(neighbour):
                index = self.order.index(neighbour) + 1
            case Before(neighbour):
                index = self.order.index(neighbour)
        self.order.insert(index, item)

    def add(self, item: int, to: Place) -> None:
        self.insert(item, to)
        self.states[item], self.attempts[item] = State.WAITING, 0

    def stands_there(self, item: int, to: Place) -> bool:
        """Whether people see the item there already; a move then changes nothing."""
        if self.states[item] is not State.WAITING:
            return isinstance(to, (After, Before)) and to.item == item
        index = self.waiting.index(item)
        before = self.waiting[index - 1] if index else None
        behind = self.waiting[index + 1] if index + 1 < len(self.waiting) else None
        match to:
            case First():
                return before is None
            case Last():
                return behind is None
            case After(neighbour):
                return neighbour in (before, item)
            case Before(neighbour):
                return neighbour in (behind, item)

    def move(self, item: int, to: Place) -> None:
        if not self.stands_there(item, to):
            self.order.remove(item)
            self.insert(item, to)

    def feed(self) -> int | None:
        """The item that goes out now; a run with nothing left ends."""
        if self.head is not None or not self.open:
            return None
        if not self.waiting:
            self.open = bool(self.which(State.POSTPONED))
            return None
        if self.waiting[0] in self.delayed:
            return None
        self.head = self.waiting[0]
        self.states[self.head] = State.DISPATCHED
        return self.head

    def settle(self, item: int, state: State) -> None:
        self.states[item] = state
        self.order.remove(item)
        self.release(item)

    def release(self, item: int) -> None:
        self.delayed.discard(item)
        if self.head == item:
            self.head = None

    def to_line(self, item: int, state: State, *, delayed: bool = False) -> None:
        """Out of the head's place, or out of the line, and back to where it stood."""
        self.release(item)
        self.states[item] = state
        if delayed:
            self.delayed.add(item)

    def fail(self, item: int) -> None:
        self.states[item] = State.FAILED
        if not self.halts:
            self.release(item)

    @property
    def unresolved(self) -> list[int]:
        return self.which(*UNRESOLVED)
