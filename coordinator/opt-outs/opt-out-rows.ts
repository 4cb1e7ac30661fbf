/** A row of table opt_out as the flows know it, with what it covers in the frontier and the index. */
import type { OptOut, OptOutState } from "./opt-out.ts";
import { targetText } from "./opt-out-target.ts";

export interface OptOutRow {
  opt_out_id: number;
  site: string | null;
  first_address: string | null;
  last_address: string | null;
  source: OptOut["source"];
  token: string;
  words: string;
  reply_to: string | null;
  requester: string | null;
  created_at: Date;
  in_force_at: Date | null;
  lapses_at: Date | null;
  confirmed_at: Date | null;
  confirmed_by: OptOut["confirmedBy"];
  ended_at: Date | null;
  ending: "lifted" | "lapsed" | null;
  ending_words: string;
  hosts: number;
  pages: number;
}

/** SQL: the columns and the tables of an OptOutRow. */
export const optOutColumns = `o.opt_out_id, o.site, host(o.first_address) as first_address,
  host(o.last_address) as last_address, o.source, o.token, o.words, o.reply_to, host(o.requester) as requester,
  o.created_at, o.in_force_at, o.lapses_at, o.confirmed_at, o.confirmed_by, o.ended_at, o.ending, o.ending_words,
  c.hosts, c.pages`;
export const optOutTables = `opt_out o
  cross join lateral (
    select count(*)::int as hosts, coalesce(sum(p.pages), 0)::int as pages
    from frontier_host h
    cross join lateral (select count(*) as pages from page where host_hash = h.host_hash) p
    where h.opt_out_id = o.opt_out_id
  ) c`;

export function optOutOf(row: OptOutRow): OptOut {
  const network = { first: row.first_address ?? "", last: row.last_address ?? "" };
  return {
    optOutId: row.opt_out_id,
    target: targetText(row.site === null ? { site: null, network } : { site: row.site, network: null }),
    kind: row.site === null ? "network" : "site",
    state: stateOf(row),
    source: row.source,
    token: row.token,
    words: row.words,
    replyTo: row.reply_to,
    requester: row.requester,
    createdAt: row.created_at,
    inForceAt: row.in_force_at,
    lapsesAt: row.lapses_at,
    confirmedAt: row.confirmed_at,
    confirmedBy: row.confirmed_by,
    endedAt: row.ended_at,
    endingWords: row.ending_words,
    hosts: row.hosts,
    pages: row.pages,
  };
}

function stateOf(row: OptOutRow): OptOutState {
  if (row.ending !== null) return row.ending;
  if (row.confirmed_at !== null) return "confirmed";
  return row.in_force_at === null ? "waiting" : "unconfirmed";
}
