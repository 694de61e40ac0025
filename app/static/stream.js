// The stream of events, read by fetch: unlike EventSource it shows every byte, so that silence is noticed, and the status of a refusal.

/** Reads event-stream text in pieces; calls back with {id, event, data} for each event, data empty where only a place is told. */
export function parser(onEvent) {
  let rest = '';
  let event = { id: null, event: 'message', data: [] };
  return piece => {
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (event.data.length || event.id) onEvent({ ...event, data: event.data.join('\n') });
        event = { id: null, event: 'message', data: [] };
        continue;
      }
      if (line.startsWith(':')) continue;
      const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
      if (name === 'data') event.data.push(value);
      else if (name === 'id' || name === 'event') event[name] = value;
    }
  };
}

/**
 * Listen until the stream ends or the signal aborts. onOpen: when it is there; onLine: for every piece, also a comment.
 * Raises Refused with the status of an answer that is no stream.
 */
export async function listen(url, last, signal, { onOpen, onLine, onEvent }) {
  const headers = { Accept: 'text/event-stream', ...(last && { 'Last-Event-ID': last }) };
  const answer = await fetch(url, { headers, signal, credentials: 'same-origin', cache: 'no-store' });
  if (!answer.ok || !(answer.headers.get('Content-Type') ?? '').startsWith('text/event-stream')) throw new Refused(answer.status);
  onOpen();
  const parse = parser(onEvent);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onLine();
    parse(value);
  }
}

export class Refused extends Error {
  constructor(status) {
    super(`status ${status}`);
    this.status = status;
  }
}
