/**
 * Bytes to text as browsers do it: byte order mark, then the header's charset, then the page's own
 * statement (WHATWG encoding sniffing); without any of them UTF-8 where the bytes are valid UTF-8, else
 * windows-1252. Decoding is the WHATWG one of @exodus/bytes: Node 20's own is wrong for windows-1252.
 */
import { isUtf8 } from "node:buffer";
import { TextDecoder as WhatwgDecoder } from "@exodus/bytes/encoding.js";
import sniffEncoding from "html-encoding-sniffer";

export interface DecodedText {
  readonly text: string;
  /** The encoding's name, in lower case. */
  readonly charset: string;
}

export function decodeText(bytes: Buffer, contentType: string): DecodedText {
  const label = /;\s*charset\s*=\s*"?([^\s;"']{1,40})/i.exec(contentType)?.[1];
  const fallback = isUtf8(bytes) ? "UTF-8" : "windows-1252";
  const encoding = sniffEncoding(bytes, {
    defaultEncoding: fallback,
    ...(label === undefined ? {} : { transportLayerEncodingLabel: label }),
  });
  return { text: decode(bytes, encoding), charset: encoding.toLowerCase() };
}

function decode(bytes: Buffer, encoding: string): string {
  if (encoding !== "UTF-8") return new WhatwgDecoder(encoding).decode(bytes);
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return bytes.toString("utf8", marked ? 3 : 0);
}
