/** Table saved_view: pages that people keep under names of their own. */
import type { Pool } from "pg";
import type { Role } from "#core/actor";
import { inTransaction } from "../database/transaction.ts";
import { mostSavedViews, type SavedView, type SavedViewStore } from "./saved-view.ts";

export function createSavedViewStore(pool: Pool): SavedViewStore {
  return {
    list: async ({ name, role }) => {
      const { rows } = await pool.query<SavedView>({
        name: "saved-views",
        text: `select view_id::float8 as "viewId", name, path, saved_at as "savedAt"
          from saved_view
          where owner_name = $1 and owner_role = $2
          order by lower(name), view_id
          limit ${mostSavedViews}`,
        values: [name, role],
      });
      return rows;
    },
    save: async (owner, view) => await save(pool, owner, view),
    remove: async ({ name, role }, viewId) => {
      const { rows } = await pool.query<{ name: string }>(
        "delete from saved_view where view_id = $1 and owner_name = $2 and owner_role = $3 returning name",
        [viewId, name, role],
      );
      return rows[0]?.name ?? null;
    },
  };
}

async function save(
  pool: Pool,
  owner: { readonly name: string; readonly role: Role },
  view: { readonly name: string; readonly path: string; readonly savedAt: Date },
): Promise<boolean> {
  return await inTransaction(pool, async (client) => {
    // One after the other, so that nobody has more than the most; few write here, and seldom.
    await client.query("lock table saved_view in share row exclusive mode");
    const { rowCount } = await client.query(
      `insert into saved_view (owner_name, owner_role, name, path, saved_at)
       select $1, $2, $3::text, $4, $5
       where (select count(*) from saved_view
              where owner_name = $1 and owner_role = $2 and name <> $3::text) < ${mostSavedViews}
       on conflict (owner_name, owner_role, name) do update
       set path = excluded.path, saved_at = excluded.saved_at`,
      [owner.name, owner.role, view.name, view.path, view.savedAt],
    );
    return rowCount === 1;
  });
}
