/** Access to the pages over one pool of connections: who asks, the pages of sign-in, and the audit log. */
import type { Pool } from "pg";
import { type CoordinatorConfig, isLoopback } from "../config.ts";
import { readCoordinatorPlace } from "../crawlers/coordinator-presence-store.ts";
import { createAuditLog } from "../database/audit-log.ts";
import type { Access } from "../web/access.ts";
import type { WebPart } from "../web/actions.ts";
import { randomSecrets } from "../web/secrets.ts";
import { createSessionAccess, type SessionAccessPorts } from "../web/session-access.ts";
import { accessRoutes } from "./access-routes.ts";
import { accountRoutes } from "./account-routes.ts";
import { auditRoutes } from "./audit-routes.ts";
import { savedViewRoutes } from "./saved-view-routes.ts";
import { createSavedViewStore } from "./saved-view-store.ts";
import { createSessionStore, createSignInLinkStore } from "./session-store.ts";
import { signInRoutes } from "./sign-in-routes.ts";
import { tokenRoutes } from "./token-routes.ts";
import { createOperatorTokenStore } from "./token-store.ts";

/** Pages are for everybody where only this machine reaches them, and for who signs in elsewhere, unless it is set. */
export function anonymousMayRead({
  access,
  listen,
  behindProxy,
}: CoordinatorConfig): SessionAccessPorts["anonymousMayRead"] {
  if (access.anonymous !== null) return access.anonymous === "read";
  return isLoopback(listen.host) && !behindProxy ? "on-this-machine" : false;
}

export function accessOver(
  pool: Pool,
  mayRead: SessionAccessPorts["anonymousMayRead"],
  now: () => Date = () => new Date(),
): Access {
  return createSessionAccess({
    sessions: createSessionStore(pool),
    tokens: createOperatorTokenStore(pool),
    hash: randomSecrets.hash,
    now,
    anonymousMayRead: mayRead,
  });
}

export interface AccessPartOptions {
  readonly access: Access;
  readonly version: string;
  readonly now?: () => Date;
}

export function accessParts(pool: Pool, options: AccessPartOptions): readonly WebPart[] {
  const { now = () => new Date() } = options;
  const sessions = createSessionStore(pool);
  const links = createSignInLinkStore(pool);
  const tokens = createOperatorTokenStore(pool);
  const savedViews = createSavedViewStore(pool);
  const audit = createAuditLog(pool);
  const secrets = randomSecrets;
  const webUrl = async () => (await readCoordinatorPlace(pool))?.webUrl ?? "http://127.0.0.1:7411";
  return [
    signInRoutes({ links, sessions, audit, secrets, ...options, now }),
    accountRoutes({ sessions, savedViews }),
    savedViewRoutes(savedViews),
    accessRoutes({ links, sessions, secrets, webUrl }),
    tokenRoutes({ tokens, secrets }),
    auditRoutes({ audit }),
  ];
}
