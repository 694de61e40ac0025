"""Started as a script in front of a service: ties its life to the supervisor's, then becomes the service.

    python -I -S leash.py SUPERVISOR SIGNAL COMMAND...

On Linux the kernel then sends SIGNAL to the service in the moment in which the supervisor dies, whatever it dies of.
Elsewhere nothing ties them, and the next start ends what is left. It is a program of its own because running Python between
fork and exec is unsafe in a supervisor with threads.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    supervisor, number, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    # Dead already: the signal above is for deaths to come.
    if os.getppid() != supervisor:
        sys.exit(1)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"Cannot start {command[0]}: {error.strerror}.")


if __name__ == "__main__":
    main()
