/** Types for those parts of untyped packages that are used here. */
declare module "html-encoding-sniffer" {
  /** Returns the WHATWG name of the encoding, such as `UTF-8`. */
  export default function sniffEncoding(
    bytes: Uint8Array,
    options?: { transportLayerEncodingLabel?: string; defaultEncoding?: string; xml?: boolean },
  ): string;
}

declare module "snowball-stemmers" {
  export function newStemmer(algorithm: string): { stem(word: string): string };
}
