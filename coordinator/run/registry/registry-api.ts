/** The schema of registry data: the generation in force, its age, and the jobs that change it. */
import { z } from "zod";
import { registryFacts } from "#rir-import/read/status-api";
import { record } from "../../web/api-operation.ts";
import { registryJob } from "./job-api.ts";

export const registryOverview = record("RegistryOverview", {
  ...registryFacts,
  filesFolder: z.strictObject({ path: z.string(), names: z.array(z.string()) }).nullable(),
  jobs: z.array(registryJob).describe("The latest first, at most eight."),
  runningJob: registryJob.nullable(),
  canStartJobs: z.boolean(),
});
