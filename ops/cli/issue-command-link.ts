/** Issues (and audits) the sign-in link of whoever starts a coordinator: an operator with the system user's name. */
import type { Pool } from "pg";
import { readCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { createSignInLinkStore } from "#coordinator/run/access/session-store";
import { type IssuedLink, issueSignInLink, linkIssued } from "#coordinator/run/access/sign-in";
import { randomSecrets } from "#coordinator/web/secrets";
import { linkMinutes } from "#core/access-types";
import { UsageError } from "#core/errors";
import { commandActor, ownName, recordCommand } from "./audit-command-change.ts";

/** Throws a UsageError when no coordinator has started with this database yet. */
export async function ownSignInLink(pool: Pool): Promise<IssuedLink> {
  const place = await readCoordinatorPlace(pool);
  if (place === null) {
    throw new UsageError(
      "where the web pages are is not known, since no coordinator has started with this database: nearcrawl up, or nearcrawl coordinator",
    );
  }
  const person = { name: ownName(), role: "operator", crawlers: [] } as const;
  const ports = { links: createSignInLinkStore(pool), secrets: randomSecrets, webUrl: place.webUrl };
  const asked = { ...person, minutes: linkMinutes.usual, issuedBy: commandActor() };
  const link = await issueSignInLink(asked, ports, new Date());
  await recordCommand(pool, linkIssued(link));
  return link;
}
