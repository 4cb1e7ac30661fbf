/** What pages load, and what is said to other crawlers. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { assets } from "./assets.ts";
import { sendError } from "./guard.ts";
import { sendValidated } from "./validators.ts";

export function addAssets(app: FastifyInstance, settings: { readonly version: string }): void {
  app.get("/assets/:name", (request: FastifyRequest<{ Params: { name: string } }>, reply) => {
    const asset = assets().get(request.params.name);
    if (asset === undefined) return sendError(request, reply, noAsset, settings);
    const isNamed = (request.query as { v?: unknown }).v === asset.digest;
    return sendValidated(request, reply, {
      ...asset,
      tag: `"${asset.digest}"`,
      lastModified: null,
      cacheControl: isNamed ? "public, max-age=31536000, immutable" : "no-cache",
    });
  });
}

/** What our pages say to other crawlers (RFC 9309): how we crawl is for everybody, the rest is work to answer and of no use to an index. */
const robots = `User-agent: *
Allow: /about-crawler
Allow: /assets/
Allow: /.well-known/
Disallow: /
`;

export function addRobots(app: FastifyInstance): void {
  app.get("/robots.txt", (_request, reply) =>
    reply.header("cache-control", "public, max-age=86400").type("text/plain; charset=utf-8").send(robots),
  );
}

const noAsset = { status: 404, title: "No such page", words: "Nothing is at this address." };
