/**
 * Counts the values and the nesting of a JSON text without building them: the work of JSON.parse bears little relation to the
 * bytes on the wire.
 */
import { ProtocolError } from "#core/errors";

interface StructureBounds {
  readonly values: number;
  readonly depth: number;
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c] as const;
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d] as const;

/** Returns the number of values; throws ProtocolError beyond the bounds. Invalid JSON may pass, since JSON.parse refuses it. */
export function boundStructure(text: string, bounds: StructureBounds): number {
  let values = 1;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at);
        break;
      case openList:
      case openObject:
        depth += 1;
        values += 1;
        if (depth > bounds.depth) throw new ProtocolError(`a message is nested deeper than ${bounds.depth}`);
        break;
      case comma:
        values += 1;
        break;
      case closeList:
      case closeObject:
        depth -= 1;
        break;
    }
    if (values > bounds.values) throw new ProtocolError(`a message has more than ${bounds.values} values`);
  }
  return values;
}

/** Returns the position of the closing quote, or the text's end. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === backslash) before -= 1;
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}

// JSON may hold text that Postgres and UTF-8 cannot: NUL and unpaired surrogates. A crawler that quotes a page sends them in
// good faith, so they are replaced and the message is accepted.

/** Only escapes can produce them: decoded UTF-8 holds no unpaired surrogate, and a plain NUL is invalid JSON. */
const escaped = /\\u(?:0000|d[89a-f])/i;

/** Throws a SyntaxError for invalid JSON. */
export function parseStorable(text: string): unknown {
  if (!escaped.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value: unknown) => (typeof value === "string" ? storable(value) : value));
}

/** Returns text that Postgres and UTF-8 can hold, of the same length. */
export function storable(text: string): string {
  return (text as string & { toWellFormed(): string }).toWellFormed().replaceAll("\0", "\ufffd");
}
