/** `nearcrawl completion`: prints the script with which a shell completes commands. */
import { Argument, Command, type Option } from "commander";

const hasValue = ({ value }: OptionNode) => value !== "none";
const ofFile = ({ value }: OptionNode) => value === "file";

/** For bash 4.2 or newer, without the package bash-completion. zsh uses the script through its bash emulation. */
const scripts = { bash: bashScript, zsh: zshScript } as const;

/** `whole` loads the command with all its sub-commands. */
export function completionCommand(whole: () => Promise<Command>): Command {
  return new Command("completion")
    .description("print the script that lets a shell complete nearcrawl's commands and options")
    .addArgument(new Argument("<shell>", "which shell").choices(Object.keys(scripts)))
    .addHelpText(
      "after",
      `
Examples:
  source <(nearcrawl completion bash)
  nearcrawl completion bash > ~/.local/share/bash-completion/completions/nearcrawl
  source <(nearcrawl completion zsh)`,
    )
    .action(async (shell: keyof typeof scripts) => {
      process.stdout.write(scripts[shell](commandNodes(await whole())));
    });
}

export function bashScript(nodes: readonly CommandNode[]): string {
  return `# bash completion of nearcrawl. Take it in with: source <(nearcrawl completion bash)
_nearcrawl_node() {
  commands= options= valued= files= choices=
  case "$1" in
${nodes.map(nodeCase).join("\n")}
    *) return 1 ;;
  esac
}

_nearcrawl_choices() {
  case "$1" in
${nodes.flatMap(choiceCases).join("\n")}
  esac
}

_nearcrawl() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path= word index
  local commands options valued files choices
  _nearcrawl_node ""
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]}
    if [[ " $valued " == *" $word "* ]]; then
      ((index++))
    elif [[ " $commands " == *" $word "* ]]; then
      path="\${path:+$path }$word"
      _nearcrawl_node "$path" || return 0
    fi
  done
  COMPREPLY=()
  choices=$(_nearcrawl_choices "$path $prev")
  if [[ -n $choices ]]; then
    COMPREPLY=($(compgen -W "$choices" -- "$cur"))
  elif [[ " $valued " == *" $prev "* ]]; then
    [[ " $files " == *" $prev "* ]] && COMPREPLY=($(compgen -f -- "$cur"))
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$commands" -- "$cur"))
    [[ " $files " == *" . "* ]] && COMPREPLY+=($(compgen -f -- "$cur"))
  fi
  return 0
}
complete -o filenames -F _nearcrawl nearcrawl
`;
}

export function zshScript(nodes: readonly CommandNode[]): string {
  return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(nodes)}`;
}

function nodeCase({ path, commands, options, takesFiles }: CommandNode): string {
  const names = (list: readonly OptionNode[]) => list.map(({ name }) => name).join(" ");
  const files = [...(takesFiles ? ["."] : []), ...options.filter(ofFile).map(({ name }) => name)];
  return (
    `    "${path}") commands="${commands.join(" ")}" options="${names(options)}" ` +
    `valued="${names(options.filter(hasValue))}" files="${files.join(" ")}" ;;`
  );
}

function choiceCases({ path, options }: CommandNode): string[] {
  return options
    .filter(({ value }) => value === "choice")
    .map(({ name, choices }) => `    "${path} ${name}") echo "${choices.join(" ")}" ;;`);
}

// The commands as shells complete them: a flat list with what may follow each command.

interface CommandNode {
  /** Words after `nearcrawl`, such as `fleet drain`. Empty for `nearcrawl` itself. */
  readonly path: string;
  readonly commands: readonly string[];
  readonly options: readonly OptionNode[];
  /** True when its arguments are files. */
  readonly takesFiles: boolean;
}

interface OptionNode {
  readonly name: string;
  /** The kind of value that follows the option. */
  readonly value: "none" | "any" | "file" | "choice";
  readonly choices: readonly string[];
}

export function commandNodes(command: Command, path = ""): CommandNode[] {
  const help = command.createHelp();
  const below = help.visibleCommands(command);
  const node: CommandNode = {
    path,
    commands: below.map((one) => one.name()),
    options: help.visibleOptions(command).flatMap(optionNodes),
    takesFiles: command.registeredArguments.some((argument) => isFile(argument.name())),
  };
  const isHelp = (one: Command) => one.name() === "help";
  return [
    node,
    ...below
      .filter((one) => !isHelp(one))
      .flatMap((one) => commandNodes(one, path === "" ? one.name() : `${path} ${one.name()}`)),
  ];
}

function optionNodes(option: Option): OptionNode[] {
  const value = valueKind(option);
  return [option.long, option.short]
    .filter((name): name is string => name !== undefined && name !== null)
    .map((name) => ({ name, value, choices: option.argChoices ?? [] }));
}

function valueKind(option: Option): OptionNode["value"] {
  if (option.argChoices) return "choice";
  if (!option.required && !option.optional) return "none";
  return isFile(/[<[]([^\]>]+)/.exec(option.flags)?.[1] ?? "") ? "file" : "any";
}

const isFile = (name: string) => /file|folder|path|fixture/i.test(name);
