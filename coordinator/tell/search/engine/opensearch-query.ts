/** A question in the query language of OpenSearch: what matches, weighed by field, and the filters. */
import { isOneOfPair } from "#core/words/words";
import { preferenceAnswers } from "#protocol/preferences";
import { contentTypes, unstated } from "../query.ts";
import type { SearchFilters } from "../search-answer.ts";
import type { EngineQuestion, TermArm, TermSequence } from "./search-engine.ts";

type Query = Readonly<Record<string, unknown>>;

/** Of terms that begin with an ideograph at the end of a phrase. */
const mostExpansions = 1000;

export function queryOf({ arms, filters }: Pick<EngineQuestion, "arms" | "filters">): Query {
  return { bool: { must: [anyOf(arms.map(armQuery))], ...filtersOf(filters) } };
}

function armQuery({ configurations, all, title, none }: TermArm): Query {
  return {
    bool: {
      filter: [{ terms: { text_search_config: configurations } }],
      must: [
        ...all.map((group) => anyOf(group.map((sequence) => inField("terms", sequence)))),
        ...title.map((sequence) => inField("title_terms", sequence)),
      ],
      must_not: none.map((sequence) => inField("terms", sequence)),
    },
  };
}

/** Matches nothing if there are none. */
const anyOf = (should: readonly Query[]): Query =>
  should.length === 0 ? { match_none: {} } : { bool: { should, minimum_should_match: 1 } };

function inField(field: "terms" | "title_terms", sequence: TermSequence): Query {
  const query = sequence.join(" ");
  if (!isOneOfPair(sequence.at(-1) ?? ""))
    return sequence.length === 1 ? { term: { [field]: query } } : { match_phrase: { [field]: query } };
  return sequence.length === 1
    ? { prefix: { [field]: query } }
    : { match_phrase_prefix: { [field]: { query, max_expansions: mostExpansions } } };
}

/** The words of `title` are in the arms. */
function filtersOf(filters: SearchFilters): { readonly filter: Query[]; readonly must_not: Query[] } {
  const { host, excludeHost, language, country, crawler, from, to, type, preference } = filters;
  const [use = "", answer = ""] = preference?.split("=") ?? [];
  const isUnstated = answer === unstated;
  const filter = [
    host !== null && { term: { sites: host } },
    language !== null && { term: { language } },
    country !== null && { term: { country } },
    crawler !== null && { term: { crawler } },
    from !== null && { range: { date: { gte: from } } },
    // A day that is rounded up, so all of it.
    to !== null && { range: { date: { lte: `${to}||/d` } } },
    type !== null && { terms: { content_type: contentTypes[type] ?? [] } },
    preference !== null && !isUnstated && { term: { uses: preference } },
  ];
  const not = [
    excludeHost !== null && { terms: { sites: excludeHost.split(",") } },
    isUnstated && { terms: { uses: preferenceAnswers.map((one) => `${use}=${one}`) } },
  ];
  return { filter: filter.filter((one) => one !== false), must_not: not.filter((one) => one !== false) };
}

const keywords = ["key", "url", "host", "text_search_config", "language", "country", "crawler", "text_group"];

/** Facts are read from columns: the stored document is long, and up to a thousand of them are wanted. */
export const factColumns = [
  ...[...keywords, "is_copy", "uses", "linking_hosts", "page_rank"].map((field) => ({ field })),
  ...["published_at", "fetched_at"].map((field) => ({ field, format: "epoch_millis" })),
];
