/**
 * Lists that people save and hand in (URLs, geofeeds), whatever their editor made of them, as UTF-8 with line feeds: UTF-16 is
 * told by its mark or by the zero bytes of its first ASCII characters, and a carriage return by itself ends a line, too.
 * Read otherwise, all of such a file would be one line, or none.
 */
const [lineFeed, carriageReturn] = [0x0a, 0x0d];

/** The same bytes where there is nothing to do. */
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

/** Without a byte order mark. */
function asUtf8(bytes: Buffer): Buffer {
  const encoding = encodingOf(bytes);
  if (encoding !== "utf-8") return Buffer.from(new TextDecoder(encoding).decode(bytes));
  return bytes.subarray(bytes.subarray(0, 3).equals(utf8Mark) ? 3 : 0);
}

const utf8Mark = Buffer.from([0xef, 0xbb, 0xbf]);

/** By the first four bytes. */
export function encodingOf([first, second, third, fourth]: Buffer): "utf-8" | "utf-16le" | "utf-16be" {
  if ((first === 0xff && second === 0xfe) || (first && second === 0 && third && fourth === 0))
    return "utf-16le";
  if ((first === 0xfe && second === 0xff) || (first === 0 && second && third === 0 && fourth))
    return "utf-16be";
  return "utf-8";
}
