/** What a room adds to the web server: its pages, its actions, and plain routes. */
import type { FastifyInstance } from "fastify";
import type { Access } from "./access.ts";
import type { Actions } from "./actions.ts";
import type { Views } from "./views.ts";

// The coordinator's web server: pages, API, live events, metrics, health. `createWebServer` gives a server
// that does not listen yet; main attaches the crawlers' gateway to its `.server` and lets it listen.

/** Adds the routes of one part of the pages. */
export type WebPart = (to: {
  readonly app: FastifyInstance;
  readonly views: Views;
  readonly actions: Actions;
  /** For routes that are no views: who asks, and what they may. */
  readonly access: Access;
}) => void;
