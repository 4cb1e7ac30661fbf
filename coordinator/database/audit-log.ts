/** Table audit_entry: who changed what. Rows are added and never changed; their size is bounded here. */
import type { Pool, PoolClient } from "pg";
import type { AuditEntry, AuditLog, AuditQuery, Change } from "#core/audit";
import type { Log } from "#core/log";
import { clean } from "./transaction.ts";

const most = { actor: 120, action: 60, target: 300, words: 1000, remoteAddress: 80 };
/** Maximum length of one value as JSON. A longer one is cut and marked. */
const mostValueCharacters = 4000;
const mostListed = 500;

export function createAuditLog(pool: Pool | PoolClient): AuditLog {
  return {
    record: async (entry) => await record(pool, entry),
    list: async (query) => await list(pool, query),
  };
}

async function record(pool: Pool | PoolClient, entry: Omit<AuditEntry, "entryId">): Promise<void> {
  await pool.query(
    `insert into audit_entry (at, actor, via, action, target, words, before, after, remote_address)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      entry.at,
      bounded(entry.actor, most.actor),
      entry.via,
      bounded(entry.action, most.action),
      entry.target === null ? null : bounded(entry.target, most.target),
      bounded(entry.words, most.words),
      keptValue(entry.before),
      keptValue(entry.after),
      entry.remoteAddress === null ? null : bounded(entry.remoteAddress, most.remoteAddress),
    ],
  );
}

function bounded(text: string, length: number): string {
  return clean(text.length > length ? `${text.slice(0, length - 1)}…` : text);
}

function keptValue(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const json = JSON.stringify(value, withoutSecrets);
  if (json === undefined) return null;
  if (json.length <= mostValueCharacters) return withoutNul(json);
  const cut = clean(json.slice(0, mostValueCharacters / 2));
  return withoutNul(JSON.stringify({ cutOff: true, characters: json.length, beginning: cut }));
}

/** Callers leave out secrets. As a safeguard, fields with such names are dropped here. */
const secretName = /secret|password|passphrase|privatekey|private_key|^token$|tokenhash|keyhash/i;

function withoutSecrets(name: string, value: unknown): unknown {
  return secretName.test(name) && typeof value !== "boolean" ? "(not kept)" : value;
}

/** Postgres' jsonb holds neither NUL nor unpaired surrogates. */
function withoutNul(json: string): string {
  return json.replace(/\\u0000|\\ud[89a-f][0-9a-f]{2}/gi, "\\ufffd");
}

async function list(pool: Pool | PoolClient, query: AuditQuery) {
  const limit = Math.min(Math.max(1, query.limit), mostListed);
  const { rows } = await pool.query<AuditEntry>(
    `select entry_id::float8 as "entryId", at, actor, via, action, target, words, before, after,
       remote_address as "remoteAddress"
     from audit_entry
     where ($1::text is null or actor = $1)
       and ($2::text is null or action = $2)
       and ($3::text is null or target = $3)
       and ($4::timestamptz is null or at >= $4)
       and ($5::timestamptz is null or at < $5)
       and ($6::bigint is null or entry_id < $6)
     order by entry_id desc
     limit $7`,
    [
      query.actor ?? null,
      query.action ?? null,
      query.target ?? null,
      query.since ?? null,
      query.until ?? null,
      query.beforeId ?? null,
      limit + 1,
    ],
  );
  return { entries: rows.slice(0, limit).map(entryOf), more: rows.length > limit };
}

function entryOf({ before, after, ...kept }: AuditEntry): AuditEntry {
  return { ...kept, ...(before !== null && { before }), ...(after !== null && { after }) };
}

interface OwnChangePorts {
  readonly pool: Pool;
  readonly log: Pick<Log, "error">;
  readonly now: () => Date;
}

/** Records a change and never rejects. `actor` is who caused it (default: the coordinator). */
export type NoteChange = (
  change: Change,
  by?: { readonly actor: string; readonly remoteAddress: string | null },
) => Promise<void>;

export function noteOwnChanges({ pool, log, now }: OwnChangePorts): NoteChange {
  const audit = createAuditLog(pool);
  return async (change, by) => {
    const who = by ? ({ ...by, via: "page" } as const) : coordinator;
    try {
      await audit.record({ ...change, ...who, at: now() });
    } catch (error) {
      log.error({ error, action: change.action, target: change.target }, "a change is not in the audit log");
    }
  };
}

const coordinator = { actor: "coordinator", via: "coordinator", remoteAddress: null } as const;
