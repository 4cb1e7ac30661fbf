/** `npm run reference`: writes the runbook's pages that are generated from the program. */
import { writeFileSync } from "node:fs";
import { references } from "./references.ts";

for (const [file, text] of Object.entries(await references()))
  writeFileSync(new URL(`./runbook/${file}`, import.meta.url), text);
