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
  const order = utf16Order(bytes);
  if (order === null) return bytes.subarray(bytes.subarray(0, 3).equals(utf8Mark) ? 3 : 0);
  const even = Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2)));
  const text = (order === "little" ? even : even.swap16()).toString("utf16le");
  return Buffer.from(text.replace(/^\ufeff/, ""));
}

const utf8Mark = Buffer.from([0xef, 0xbb, 0xbf]);

function utf16Order([first, second, third, fourth]: Buffer): "little" | "big" | null {
  if (first === 0xff && second === 0xfe) return "little";
  if (first === 0xfe && second === 0xff) return "big";
  if (first && second === 0 && third && fourth === 0) return "little";
  if (first === 0 && second && third === 0 && fourth) return "big";
  return null;
}
