/**
 * What differs between the text search of Postgres' major versions: 18 has a newer edition of the Snowball stemmers,
 * and since 16 invisible format characters (soft hyphen, zero-width space) are part of the word they stand in.
 */
export interface TextSearchEdition {
  readonly stems: "older" | "newer";
  readonly formatCharactersBreakWords: boolean;
}

/** The embedded server's. */
export const newestVersion = 18;

/** `majorVersion`: of the coordinator's Postgres, such as 15. */
export function textSearchEdition(majorVersion: number): TextSearchEdition {
  return { stems: majorVersion < 18 ? "older" : "newer", formatCharactersBreakWords: majorVersion < 16 };
}
