/** `npm run settings`: writes the reference of the coordinator's settings. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { settingsReference } from "./cli/setup/settings-reference.ts";

writeFileSync(fileURLToPath(new URL("./runbook/settings.md", import.meta.url)), settingsReference());
