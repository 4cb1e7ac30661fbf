/** Which channel a URL of the frontier lies in, in SQL: of several the earliest, as admission has it (channel-filter.ts). */

/** Path and query of the canonical URL in a column. */
export const pathSql = (url: string) => `substring(${url} from '^[a-z]+://[^/]*(/.*)$')`;

/** The path lies in one of the directories of row `c` of table channel. */
export const holdsPath = (path: string) =>
  `exists (select from unnest(c.directories) directory where starts_with(${path}, directory))`;

/** Its number; 0: none. `u`: a row with `host_hash` and `url`. */
export const channelOfUrl = (u: string) => `coalesce((
  select min(c.channel_id)
  from channel c
  where c.host_hash = ${u}.host_hash and ${holdsPath(pathSql(`${u}.url`))}
), 0)`;
