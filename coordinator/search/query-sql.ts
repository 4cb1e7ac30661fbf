/**
 * The words as queries. Lexemes were made by the crawler under the page's own text search configuration, so the words
 * become one query for each configuration that the index has; configurations that make the same of them share one.
 * Words arrive only as parameters.
 */
import type { PoolClient } from "pg";

export interface WordQuery {
  /** Of the pages that this is for. */
  readonly configurations: readonly string[];
  readonly query: string;
  /** The same with the words of a phrase anywhere: the index knows words, and not where they stand. Null: no phrase. */
  readonly looseQuery: string | null;
  /** For title, headings and address: the address has words as they are, under no language's rules. */
  readonly headQuery: string;
  /** Any of the words, to rank those parts by. */
  readonly anyQuery: string;
}

/** Empty: nothing but words too common to be indexed, or only excluded ones. */
export async function wordQueries(
  client: PoolClient,
  words: string,
  configurations: readonly string[],
): Promise<WordQuery[]> {
  const { rows } = await client.query<WordQuery>({
    name: "search-queries",
    text: queriesSql,
    values: [words, configurations],
  });
  return rows;
}

const queriesSql = `
  select array_agg(made.cfgname::text order by made.cfgname) as configurations, made.query::text as query,
    case when made.query::text ~ '<(-|[0-9]+)>'
      then regexp_replace(made.query::text, '<(-|[0-9]+)>', '&', 'g') end as "looseQuery",
    (case when made.plain = made.query or numnode(made.plain) = 0 then made.query
       else made.query || made.plain end)::text as "headQuery",
    replace(regexp_replace(made.query::text, ' (&|<->|<[0-9]+>) ', ' | ', 'g'), '!', '') as "anyQuery"
  from (
    select c.cfgname, websearch_to_tsquery(c.oid::regconfig, $1) as query,
      websearch_to_tsquery('pg_catalog.simple', $1) as plain
    from pg_catalog.pg_ts_config c
    join pg_catalog.pg_namespace n on n.oid = c.cfgnamespace and n.nspname = 'pg_catalog'
    where c.cfgname = any($2::text[])
  ) made
  where numnode(made.query) > 0 and querytree(made.query) not in ('', 'T')
  group by made.query, made.plain`;

/** The configurations that pages of the index have: one step through the index for each. */
export const configurationsSql = `
  with recursive known as (
    (select text_search_config from page order by text_search_config limit 1)
    union all
    select (select p.text_search_config from page p where p.text_search_config > k.text_search_config
      order by p.text_search_config limit 1)
    from known k
    where k.text_search_config is not null
  )
  select text_search_config from known where text_search_config is not null`;

/** The parts of table page, by the names that statements take. */
export const partsSql = `
  select quote_ident(c.relname) as part
  from pg_catalog.pg_inherits i
  join pg_catalog.pg_class c on c.oid = i.inhrelid
  where i.inhparent = 'page'::regclass
  order by c.relname`;
