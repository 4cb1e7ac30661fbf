/** What is told of the web graph. */
import { z } from "zod";
import { dateTime } from "../../web/api-operation.ts";

const graphDegrees = z
  .strictObject({
    average: z.number(),
    most: z.int(),
    bins: z.array(z.strictObject({ least: z.int(), most: z.int(), nodes: z.int() })),
  })
  .meta({ id: "GraphDegrees" });

const rankedPage = z
  .strictObject({
    url: z.string().nullable().describe("Null: the frontier does not hold it."),
    pageRank: z.number(),
    inLinks: z.int(),
    outLinks: z.int(),
  })
  .meta({ id: "RankedPage" });

const rankedHost = z
  .strictObject({
    host: z.string().nullable().describe("Null: the frontier does not hold it."),
    rank: z.number(),
    pages: z.int(),
    linkingHosts: z.int(),
    inLinks: z.int(),
    outLinks: z.int(),
  })
  .meta({ id: "RankedHost" });

export const graphSummary = z
  .strictObject({
    madeAt: dateTime(),
    nodes: z.int().describe("URLs of the frontier, and those beyond it that pages link to."),
    knownNodes: z.int().describe("Of the frontier."),
    links: z.int().describe("Without those of pages to themselves."),
    selfLinks: z.int(),
    outLinks: graphDegrees,
    inLinks: graphDegrees,
    visited: z
      .strictObject({ pages: z.int(), averageOutLinks: z.number().nullable() })
      .describe("Pages that were visited and how many links they have (table 5.1 of the Anansi thesis)."),
    change: z.strictObject({
      pages: z.int(),
      average: z
        .number()
        .nullable()
        .describe("Mean share of a page's links that changed from one visit to the next."),
    }),
    hosts: z.int(),
    hostLinks: z.int().describe("Pairs of hosts with links from one to the other."),
    linksBetweenHosts: z.int(),
    linksWithinHosts: z.int(),
    topPages: z.array(rankedPage),
    mostLinked: z.array(rankedPage),
    topHosts: z.array(rankedHost),
    ranking: z.strictObject({
      engine: z.enum(["local", "sql"]),
      damping: z.number(),
      tolerance: z.number(),
      iterations: z.int(),
      residual: z.number(),
      converged: z.boolean(),
    }),
  })
  .meta({ id: "GraphSummary" });
