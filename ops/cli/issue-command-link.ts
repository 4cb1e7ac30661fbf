/** Sign-in links that commands issue, for the caller or a named person. Recorded in the audit log. */
import type { Pool } from "pg";
import { readCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { createSignInLinkStore } from "#coordinator/run/access/session-store";
import { type IssuedLink, issueSignInLink, linkIssued } from "#coordinator/run/access/sign-in";
import { randomSecrets } from "#coordinator/web/secrets";
import { linkMinutes } from "#core/access-types";
import type { Person } from "#core/actor";
import { UsageError } from "#core/errors";
import { commandActor, ownName, recordCommand } from "./audit-command-change.ts";

/** Throws a UsageError when no coordinator has started yet, or a name is invalid or unknown. */
async function commandSignInLink(
  pool: Pool,
  asked: Person & { readonly minutes: number },
): Promise<IssuedLink> {
  const place = await readCoordinatorPlace(pool);
  if (place === null) {
    throw new UsageError(
      "where the web pages are is not known, since no coordinator has started with this database: nearcrawl up, or nearcrawl coordinator",
    );
  }
  await requireCrawlers(pool, asked.crawlers);
  const ports = { links: createSignInLinkStore(pool), secrets: randomSecrets, webUrl: place.webUrl };
  const link = await issueSignInLink({ ...asked, issuedBy: commandActor() }, ports, new Date());
  await recordCommand(pool, linkIssued(link));
  return link;
}

/** For whoever started the coordinator: an operator with the system user's name. */
export async function ownSignInLink(pool: Pool): Promise<IssuedLink> {
  const person = { name: ownName(), role: "operator", crawlers: [] } as const;
  return await commandSignInLink(pool, { ...person, minutes: linkMinutes.usual });
}

async function requireCrawlers(pool: Pool, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const { rows } = await pool.query<{ name: string }>(
    "select name from unnest($1::text[]) as asked (name) where not exists (select from crawler c where c.name = asked.name)",
    [names],
  );
  const [missing] = rows;
  if (missing)
    throw new UsageError(`there is no crawler "${missing.name.slice(0, 100)}": nearcrawl fleet list`);
}
