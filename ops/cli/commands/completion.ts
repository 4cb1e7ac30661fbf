/** `nearcrawl completion`: what makes a shell complete the commands. */
import { Argument, Command } from "commander";
import { bashScript } from "../completion/bash-script.ts";
import { commandNodes } from "../completion/command-tree.ts";
import { zshScript } from "../completion/zsh-script.ts";

const scripts = { bash: bashScript, zsh: zshScript } as const;

/** `whole`: the command with all its sub-commands. */
export function completionCommand(whole: () => Promise<Command>): Command {
  return new Command("completion")
    .description("print the script that lets a shell complete nearcrawl's commands and options")
    .addArgument(new Argument("<shell>", "which shell").choices(Object.keys(scripts)))
    .addHelpText(
      "after",
      "\nExamples:\n  source <(nearcrawl completion bash)\n  nearcrawl completion bash > ~/.local/share/bash-completion/completions/nearcrawl\n  source <(nearcrawl completion zsh)\n  nearcrawl completion zsh > ~/.zfunc/_nearcrawl",
    )
    .action(async (shell: keyof typeof scripts) => {
      process.stdout.write(scripts[shell](commandNodes(await whole())));
    });
}
