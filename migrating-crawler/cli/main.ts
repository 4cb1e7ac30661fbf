/** The partners' program `nearcrawl-crawler.mjs`. Like few other files, it reads the environment and the arguments. */
import { outliveReaders } from "./closed-output.ts";
import { partnerSurroundings } from "./partner-commands.ts";
import { runPartnerProgram } from "./partner-program.ts";

const [, script = "nearcrawl-crawler.mjs", ...args] = process.argv;

outliveReaders("nearcrawl-crawler");
const self = [...process.execArgv, script];
await runPartnerProgram(args, partnerSurroundings({ env: process.env, program: `node ${script}`, self }));
