/**
 * Requests of the owner of the coordinator's home. They come from commands: through the coordinator's Unix socket, or within the
 * command's own process where no coordinator runs. The owner may do everything, because whoever can read the home can also reach
 * the database. The audit log records these changes as made by a command.
 */
import type { IncomingMessage, RequestListener } from "node:http";
import type { FastifyRequest } from "fastify";
import { type Actor, scopes } from "#core/actor";
import { printable } from "#core/terminal-text";
import { type Access, anonymousVisit } from "./access.ts";

const owned = new WeakSet<IncomingMessage>();

/** Names who types the command, such as `root on db1`. It is read from the owner's requests only. */
export const actorHeader = "nearcrawl-actor";

/** Marks every request of a server as the owner's. The caller makes sure that only the owner can connect to that server. */
export const ownersRouting =
  (routing: RequestListener): RequestListener =>
  (request, response) => {
    owned.add(request);
    // A Unix socket has no remote address, but rate limits and logs expect one.
    Object.defineProperty(request.socket, "remoteAddress", { value: "127.0.0.1", configurable: true });
    routing(request, response);
  };

export const isOwners = ({ raw }: FastifyRequest): boolean => owned.has(raw);

/** `isAlone`: the requests never leave the owner's own process, so all of them are the owner's. */
export function ownerAccess(access: Access, isAlone: boolean): Access {
  return {
    ...access,
    identify: async (request) => {
      if (!isAlone && !isOwners(request)) return await access.identify(request);
      return { ...anonymousVisit, actor: ownerOf(request), isOwner: true };
    },
  };
}

const mostOfName = 120;

function ownerOf({ headers }: FastifyRequest): Actor {
  const name = headers[actorHeader];
  return {
    ...{ name: typeof name === "string" ? printable(name, mostOfName) : "the owner of the home" },
    ...{ role: "operator", scopes, crawlers: [] },
  };
}
