/** Tables setting, policy_version and policy_file: the operators' changes of policies, and their history. */
import type { Pool, PoolClient } from "pg";
import { tell } from "#db/schema-channel";
import { ChannelListener } from "../../database/channel-listener.ts";
import { clean, inTransaction } from "../../database/transaction.ts";
import type { PolicyValue } from "./catalogue.ts";
import type { PolicyName, PolicySettings } from "./schema.ts";

/** The stored row, which is not validated yet. */
interface StoredSetting {
  readonly name: string;
  readonly value: unknown;
  readonly changedAt: Date;
  readonly changedBy: string;
}

export interface StoredPolicies {
  /** Version of the latest change; 0 if there is none. */
  readonly version: number;
  readonly settings: readonly StoredSetting[];
  /** The file's values of the coordinator that started last, not validated yet; null if none has started. */
  readonly file: unknown;
}

export interface ChangedPolicy {
  readonly name: PolicyName;
  /** `null` means the file's value. */
  readonly before: PolicyValue | null;
  readonly after: PolicyValue | null;
}

export interface PolicyVersion {
  readonly version: number;
  readonly changedAt: Date;
  readonly changedBy: string;
  readonly words: string;
  /** The version that this one undoes. */
  readonly takesBack: number | null;
  readonly changes: readonly ChangedPolicy[];
}

export type NewPolicyVersion = Omit<PolicyVersion, "version">;

/** Maximum rows read. If there are more, something else has written to the table. */
const mostRows = 1000;

export type PolicyStore = ReturnType<typeof createPolicyStore>;

export function createPolicyStore(pool: Pool) {
  return {
    read: async (): Promise<StoredPolicies> => {
      const { rows } = await pool.query<StoredRow>(
        `select coalesce((select max(version) from policy_version), 0) as version,
           (select settings from policy_file) as file,
           coalesce((select jsonb_agg(to_jsonb(s) order by s.name)
                     from (select name, value, changed_at as "changedAt", changed_by as "changedBy"
                           from setting order by name limit ${mostRows}) s), '[]') as settings`,
      );
      const { version, file, settings } = rows[0]!;
      return {
        version,
        file,
        settings: settings.map((row) => ({ ...row, changedAt: new Date(row.changedAt) })),
      };
    },
    /** Saves in one transaction, and notifies running coordinators. Returns null if something has changed since `basedOn`. */
    save: async (version: NewPolicyVersion, basedOn: number) =>
      await inTransaction(pool, async (client) => await save(client, version, basedOn)),
    history: async (limit: number) => await versions(pool, "true order by version desc limit $1", [limit]),
    version: async (version: number) => (await versions(pool, "version = $1", [version]))[0] ?? null,
    /** Records the values in this coordinator's file. */
    stateFile: async (settings: PolicySettings, now: Date) => {
      await pool.query(
        `insert into policy_file (settings, stated_at) values ($1, $2)
         on conflict (only_one) do update set settings = excluded.settings, stated_at = excluded.stated_at`,
        [JSON.stringify(settings), now],
      );
    },
    onChange: async (changed: () => void) => {
      const listener = new ChannelListener(pool, "nearcrawl_policies", changed);
      await listener.listen();
      return { stop: async () => await listener.stop() };
    },
  };
}

interface StoredRow {
  version: number;
  file: unknown;
  settings: (Omit<StoredSetting, "changedAt"> & { changedAt: string })[];
}

/** Concurrent saves wait for each other. The later one finds that the version has changed. */
async function save(client: PoolClient, version: NewPolicyVersion, basedOn: number): Promise<number | null> {
  await client.query("lock table policy_version in share row exclusive mode");
  const { rows } = await client.query<{ version: number }>(
    "select coalesce(max(version), 0) as version from policy_version",
  );
  if (rows[0]!.version !== basedOn) return null;
  await client.query(
    `insert into policy_version (version, changed_at, changed_by, words, takes_back, changes)
     values ($1, $2, $3, $4, $5, $6)`,
    [
      basedOn + 1,
      version.changedAt,
      version.changedBy,
      clean(version.words),
      version.takesBack,
      JSON.stringify(version.changes),
    ],
  );
  await write(client, version);
  await tell(client, "nearcrawl_policies", [String(basedOn + 1)]);
  return basedOn + 1;
}

async function write(client: PoolClient, { changes, changedAt, changedBy }: NewPolicyVersion): Promise<void> {
  const gone = changes.filter(({ after }) => after === null).map(({ name }) => name);
  const kept = changes.filter((change) => change.after !== null);
  await client.query("delete from setting where name = any($1::text[])", [gone]);
  await client.query(
    `insert into setting (name, value, changed_at, changed_by)
     select given.name, given.value::jsonb, $3, $4
     from unnest($1::text[], $2::text[]) as given (name, value)
     on conflict (name) do update
       set value = excluded.value, changed_at = excluded.changed_at, changed_by = excluded.changed_by`,
    [kept.map(({ name }) => name), kept.map(({ after }) => JSON.stringify(after)), changedAt, changedBy],
  );
}

async function versions(pool: Pool, where: string, values: unknown[]): Promise<PolicyVersion[]> {
  const { rows } = await pool.query<PolicyVersion>(
    `select version, changed_at as "changedAt", changed_by as "changedBy", words, takes_back as "takesBack", changes
     from policy_version
     where ${where}`,
    values,
  );
  return rows;
}
