/** Access to the pages: authentication, sign-in pages and the audit log, over one connection pool. */
import type { Pool } from "pg";
import { type Log, silentLog } from "#core/log";
import { isLoopbackHost } from "#protocol/invitation";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { createAuditLog } from "../../database/audit-log.ts";
import { readCoordinatorPlace } from "../../place/crawlers/coordinator-place-store.ts";
import type { Access } from "../../web/access.ts";
import { randomSecrets } from "../../web/secrets.ts";
import { type AnonymousReading, createSessionAccess } from "../../web/session-access.ts";
import { accessOperations, accountOperations, ownSessionForms, signInLinkOperations } from "./access-ask.ts";
import { auditOperations } from "./audit-ask.ts";
import { createOperatorTokenStore, createSessionStore, createSignInLinkStore } from "./session-store.ts";
import { signInRoutes } from "./sign-in-routes.ts";
import { tokenOperations } from "./tokens-ask.ts";

/** The settings that determine who can reach the pages. */
interface ExposureSettings {
  readonly access: { readonly anonymous: "read" | "nothing" | null };
  readonly listen: { readonly host: string };
  readonly behindProxy: boolean;
  readonly tls: unknown;
  readonly publicUrl: string | null;
}

/** With a public address, TLS or a declared proxy, others can reach the pages, so that even reading requires a sign-in. */
export function anonymousMayRead({
  access,
  listen,
  behindProxy,
  tls,
  publicUrl,
}: ExposureSettings): AnonymousReading {
  if (access.anonymous !== null) return access.anonymous === "read";
  const isPublic = publicUrl !== null && !isLoopbackHost(new URL(publicUrl).hostname);
  return isLoopbackHost(listen.host) && !behindProxy && tls === null && !isPublic ? "on-this-machine" : false;
}

export function accessOver(
  pool: Pool,
  mayRead: AnonymousReading,
  now: () => Date = () => new Date(),
  log: Pick<Log, "warn"> = silentLog,
): Access {
  return createSessionAccess({
    sessions: createSessionStore(pool),
    tokens: createOperatorTokenStore(pool),
    hash: randomSecrets.hash,
    now,
    anonymousMayRead: mayRead,
    log,
  });
}

interface AccessPartOptions {
  readonly access: Access;
  readonly version: string;
  readonly now?: () => Date;
}

export function accessParts(pool: Pool, options: AccessPartOptions): readonly WebPart[] {
  const { now = () => new Date() } = options;
  const sessions = createSessionStore(pool);
  const links = createSignInLinkStore(pool);
  const tokens = createOperatorTokenStore(pool);
  const audit = createAuditLog(pool);
  const secrets = randomSecrets;
  const webUrl = async () => (await readCoordinatorPlace(pool))?.webUrl ?? null;
  const ofAccess = {
    ...accessOperations,
    ...accountOperations,
    ...ownSessionForms,
    ...signInLinkOperations,
  };
  return [
    signInRoutes({ links, sessions, audit, secrets, ...options, now }),
    addOperations(ofAccess, { links, sessions, secrets, webUrl }),
    addOperations(tokenOperations, { tokens, secrets }),
    addOperations(auditOperations, audit),
  ];
}
