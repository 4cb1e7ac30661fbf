/**
 * Requests of whoever owns the coordinator's home: commands, by its Unix socket, or in their own process where no coordinator
 * runs. They may do everything, as whoever reaches the database could; what they change is written down as a command's.
 */
import type { IncomingMessage, RequestListener } from "node:http";
import type { FastifyRequest } from "fastify";
import { type Actor, scopes } from "#core/actor";
import { printable } from "#core/terminal-text";
import { type Access, anonymousVisit } from "./access.ts";

const owned = new WeakSet<IncomingMessage>();

/** Who types the command: `root on db1`. Of requests of the owner alone; anybody else's is not looked at. */
export const actorHeader = "nearcrawl-actor";

/** Of a server that only the owner of the home can reach: its folder's rights keep others out. */
export const ownersRouting =
  (routing: RequestListener): RequestListener =>
  (request, response) => {
    owned.add(request);
    // A Unix socket has no address, and pages ask for one everywhere.
    Object.defineProperty(request.socket, "remoteAddress", { value: "127.0.0.1", configurable: true });
    routing(request, response);
  };

export const isOwners = ({ raw }: FastifyRequest): boolean => owned.has(raw);

/** `isAlone`: nobody but the owner's own process asks. */
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
