/** What a room adds to the web server: its operations, and plain routes. */
import type { FastifyInstance } from "fastify";
import type { Access } from "../web/access.ts";
import type { DeedSettings } from "./deeds.ts";
import type { Views } from "./views.ts";

/** Adds the routes of one part of the pages. */
export type WebPart = (to: {
  readonly app: FastifyInstance;
  readonly views: Views;
  readonly deeds: DeedSettings;
  /** For routes that are no views: the caller and its rights. */
  readonly access: Access;
}) => void;
