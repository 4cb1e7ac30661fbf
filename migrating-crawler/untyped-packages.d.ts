/** What we use of packages that come without types. */
declare module "html-encoding-sniffer" {
  /** The name of the encoding (WHATWG), such as `UTF-8`. */
  export default function sniffEncoding(
    bytes: Uint8Array,
    options?: { transportLayerEncodingLabel?: string; defaultEncoding?: string; xml?: boolean },
  ): string;
}

declare module "snowball-stemmers" {
  /** Throws for an algorithm that it does not have. */
  export function newStemmer(algorithm: string): { stem(word: string): string };
}
