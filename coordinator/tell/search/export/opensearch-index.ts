/**
 * The index that an export creates if there is none: its fields, and how queries for `lexemes` match stems. Fields
 * not named here are stored and not indexed, so that a later version may send more.
 */

/** Postgres' text search configurations, with Lucene's names of the same Snowball stemmers. */
const stemmers: Readonly<Record<string, string>> = {
  danish: "Danish",
  dutch: "Dutch",
  english: "English",
  finnish: "Finnish",
  french: "French",
  german: "German",
  hungarian: "Hungarian",
  italian: "Italian",
  norwegian: "Norwegian",
  portuguese: "Portuguese",
  romanian: "Romanian",
  russian: "Russian",
  spanish: "Spanish",
  swedish: "Swedish",
  turkish: "Turkish",
};

const keyword = { type: "keyword" } as const;
const text = { type: "text" } as const;
const date = { type: "date" } as const;
/** Beyond the longest term allowed. */
const longKeyword = { type: "keyword", ignore_above: 8000 } as const;

export const indexBody = {
  settings: {
    analysis: {
      filter: Object.fromEntries(
        Object.entries(stemmers).map(([name, language]) => [
          `nearcrawl_${name}`,
          { type: "snowball", language },
        ]),
      ),
      analyzer: Object.fromEntries(
        [...Object.keys(stemmers), "simple"].map((name) => [
          `nearcrawl_${name}`,
          {
            type: "custom",
            tokenizer: "standard",
            filter: name === "simple" ? ["lowercase"] : ["lowercase", `nearcrawl_${name}`],
          },
        ]),
      ),
    },
  },
  mappings: {
    dynamic: false,
    properties: {
      url: longKeyword,
      host: keyword,
      title: text,
      description: text,
      headings: text,
      excerpt: text,
      lexemes: { type: "text", analyzer: "whitespace", search_analyzer: "nearcrawl_simple" },
      text_search_config: keyword,
      language: keyword,
      country: keyword,
      content_type: keyword,
      canonical_url: longKeyword,
      published_at: date,
      modified_at: date,
      fetched_at: date,
      crawler: keyword,
      words: { type: "integer" },
      linking_hosts: { type: "integer" },
      page_rank: { type: "float" },
      text_group: keyword,
      is_copy: { type: "boolean" },
      uses: keyword,
      change: { type: "long" },
      nearcrawl_cursor: { type: "object", enabled: false },
    },
  },
} as const;
