/** Caches how Postgres parses the pieces of a text: most words of a language recur. */
import type { Pool } from "pg";
import {
  firstCharacters,
  lexemesOfQuery,
  markedText,
  mayMatch,
  type PieceToken,
  piecesOf,
  type ReadPiece,
} from "./headline.ts";

/** At most twice this many are kept: about 10 MB. */
const keptPieces = 25_000;

/** Longer pieces hardly recur. */
const longestKept = 64;

/** Longer ones are not words: the protocol's excerpts have 600 characters. */
const longestRead = 5000;

interface TextToMark {
  readonly text: string;
  /** A configuration in pg_catalog of this server. */
  readonly configuration: string;
  /** A tsquery. */
  readonly query: string;
}

export class Headlines {
  readonly #pool: Pool;
  /**
   * By configuration and piece. When it is full it becomes the previous one, and pieces that occur again are copied
   * from there.
   */
  #pieces = new Map<string, Map<string, ReadPiece>>();
  #previous = new Map<string, Map<string, ReadPiece>>();
  #kept = 0;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async mark(texts: readonly TextToMark[]): Promise<string[]> {
    const missing = new Missing();
    const read = texts.map((text) => {
      const lexemes = lexemesOfQuery(text.query);
      const firsts = firstCharacters(text.configuration, lexemes);
      const pieces = piecesOf(text.text).map((piece) => {
        const isWorth = piece.length <= longestRead && mayMatch(piece, firsts);
        const tokens = isWorth ? this.#known(text.configuration, piece) : null;
        if (tokens === undefined) missing.add(text.configuration, piece);
        return { piece, tokens };
      });
      return { ...text, lexemes, pieces };
    });
    const found = await this.#ask(missing);
    return read.map(({ text, configuration, lexemes, pieces }) => {
      const known = pieces.map(({ piece, tokens }) => ({
        length: piece.length,
        tokens: tokens === undefined ? (found.get(configuration)?.get(piece) ?? null) : tokens,
      }));
      return markedText(text, known, lexemes);
    });
  }

  /** Undefined: not known. */
  #known(configuration: string, piece: string): ReadPiece | undefined {
    const known = this.#pieces.get(configuration)?.get(piece);
    if (known !== undefined) return known;
    const before = this.#previous.get(configuration)?.get(piece);
    if (before !== undefined) this.#keep(configuration, { piece, tokens: before });
    return before;
  }

  #keep(
    configuration: string,
    { piece, tokens }: { readonly piece: string; readonly tokens: ReadPiece },
  ): void {
    if (piece.length > longestKept) return;
    if (this.#kept >= keptPieces) {
      this.#previous = this.#pieces;
      this.#pieces = new Map();
      this.#kept = 0;
    }
    // The piece may be a slice that keeps all of its text in memory.
    ofConfiguration(this.#pieces, configuration).set(Buffer.from(piece).toString(), tokens);
    this.#kept += 1;
  }

  async #ask({ configurations, pieces }: Missing): Promise<Map<string, Map<string, ReadPiece>>> {
    const found = new Map<string, Map<string, ReadPiece>>();
    if (pieces.length === 0) return found;
    const { rows } = await this.#pool.query<{ at: number; text: string; lexemes: string[] | null }>({
      name: "search-pieces",
      text: piecesSql,
      values: [configurations, pieces],
    });
    const read: PieceToken[][] = pieces.map(() => []);
    for (const row of rows) read[row.at - 1]!.push({ text: row.text, lexemes: row.lexemes ?? [] });
    for (const [at, piece] of pieces.entries()) {
      const configuration = configurations[at]!;
      const tokens = read[at]!.some(({ lexemes }) => lexemes.length > 0) ? read[at]! : null;
      ofConfiguration(found, configuration).set(piece, tokens);
      this.#keep(configuration, { piece, tokens });
    }
    return found;
  }
}

function ofConfiguration<T>(all: Map<string, Map<string, T>>, configuration: string): Map<string, T> {
  let one = all.get(configuration);
  if (one === undefined) {
    one = new Map();
    all.set(configuration, one);
  }
  return one;
}

/** Pieces to ask Postgres about, each once, with their configurations in a parallel array. */
class Missing {
  readonly configurations: string[] = [];
  readonly pieces: string[] = [];
  readonly #seen = new Map<string, Map<string, true>>();

  add(configuration: string, piece: string): void {
    const seen = ofConfiguration(this.#seen, configuration);
    if (seen.has(piece)) return;
    seen.set(piece, true);
    this.configurations.push(configuration);
    this.pieces.push(piece);
  }
}

/**
 * As in ts_debug, the first dictionary that knows a token gives its lexemes. Tokens too long for an index are left
 * out, and so are tokens that the parser also returns in parts (URLs and compounds): only their parts count, as in
 * ts_headline.
 */
const piecesSql = `
  select given.at::int, token.token as text, known.lexemes
  from unnest($1::text[], $2::text[]) with ordinality as given (configuration, piece, at)
  join pg_catalog.pg_ts_config c
    on c.cfgname = given.configuration and c.cfgnamespace = 'pg_catalog'::regnamespace
  cross join lateral ts_parse(c.cfgparser, given.piece) with ordinality as token (tokid, token, place)
  left join lateral (
    select ts_lexize(m.mapdict::regdictionary, token.token) as lexemes
    from pg_catalog.pg_ts_config_map m
    where m.mapcfg = c.oid and m.maptokentype = token.tokid and octet_length(token.token) < 2047
      and ts_lexize(m.mapdict::regdictionary, token.token) is not null
    order by m.mapseqno
    limit 1
  ) known on true
  where token.tokid not in (5, 15, 16, 17)
  order by given.at, token.place`;
