/**
 * Turns lists that people submit (URLs, geofeeds) into UTF-8 with line feeds, whatever their editor wrote. UTF-16 is
 * recognised by its mark or the zero bytes of its first ASCII characters. A lone carriage return also ends a line.
 */
const [lineFeed, carriageReturn] = [0x0a, 0x0d];

export function plainLines(bytes: Buffer): Buffer {
  const text = asUtf8(bytes);
  let lines = text;
  for (let at = text.indexOf(carriageReturn); at >= 0; at = text.indexOf(carriageReturn, at + 1)) {
    if (text[at + 1] === lineFeed) continue;
    if (lines === text) lines = Buffer.from(text);
    lines[at] = lineFeed;
  }
  return lines;
}

function asUtf8(bytes: Buffer): Buffer {
  const encoding = encodingOf(bytes);
  if (encoding !== "utf-8") return Buffer.from(new TextDecoder(encoding).decode(bytes));
  return bytes.subarray(bytes.subarray(0, 3).equals(utf8Mark) ? 3 : 0);
}

const utf8Mark = Buffer.from([0xef, 0xbb, 0xbf]);

/** Decides by the first four bytes. */
export function encodingOf([first, second, third, fourth]: Buffer): "utf-8" | "utf-16le" | "utf-16be" {
  if ((first === 0xff && second === 0xfe) || (first && second === 0 && third && fourth === 0))
    return "utf-16le";
  if ((first === 0xfe && second === 0xff) || (first === 0 && second && third === 0 && fourth))
    return "utf-16be";
  return "utf-8";
}
