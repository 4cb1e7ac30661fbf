/** `nearcrawl simulate`: how the crawler decides, without a network. Each subcommand has its file in ../simulate. */
import { Command } from "commander";
import { balanceCommand } from "../simulate/balance-command.ts";
import { calibrateCommand } from "../simulate/calibrate-command.ts";
import { delegationCommand } from "../simulate/delegation-command.ts";
import { orderCommand } from "../simulate/order-command.ts";
import { recrawlCommand } from "../simulate/recrawl-command.ts";

export function simulateCommand(): Command {
  return new Command("simulate")
    .description("try out how the crawler decides, on measured or generated figures, without a network")
    .addCommand(delegationCommand())
    .addCommand(balanceCommand())
    .addCommand(calibrateCommand())
    .addCommand(orderCommand())
    .addCommand(recrawlCommand());
}
