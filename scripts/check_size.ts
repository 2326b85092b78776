/**
 * A plugin of `deno lint`, which deno.json names: files over 500 lines and functions over 60 say why, in a comment
 * that begins with `size:`. Generated files are exempt; of tests only the files count.
 */

const MAX_FILE_LINES = 500;
const MAX_FUNCTION_LINES = 60;

type Node = Deno.lint.Node;
type RuleContext = Deno.lint.RuleContext;

function lineCount(text: string): number {
  return text.trimEnd().split("\n").length;
}

function isReason(comment: { value: string }): boolean {
  return /^\s*size: \S/.test(comment.value);
}

function isExempt(filename: string): boolean {
  return filename.endsWith(".gen.ts");
}

function checkFile(context: RuleContext): Deno.lint.LintVisitor {
  if (isExempt(context.filename)) return {};
  return {
    Program(node) {
      const lines = lineCount(context.sourceCode.text);
      if (lines <= MAX_FILE_LINES) return;
      const body = node.body[0]?.range[0] ?? Infinity;
      if (node.comments.some((comment) => isReason(comment) && comment.range[0] < body)) return;
      context.report({
        range: [0, 1],
        message:
          `The file has ${lines} lines: split it below ${MAX_FILE_LINES}, or say why not in a first line "// size: …"`,
      });
    },
  };
}

function checkFunction(context: RuleContext): Deno.lint.LintVisitor {
  if (isExempt(context.filename) || /\/tests\//.test(context.filename)) return {};
  const visit = (node: Node) => {
    const lines = lineCount(context.sourceCode.getText(node));
    if (lines <= MAX_FUNCTION_LINES) return;
    const [start, end] = node.range;
    const before = context.sourceCode.ast.comments.filter((comment) => {
      // In it, or on the lines right above it.
      if (comment.range[0] >= start && comment.range[1] <= end) return true;
      return comment.range[1] <= start &&
        lineCount(context.sourceCode.text.slice(comment.range[0], start)) <= 3;
    });
    if (before.some(isReason)) return;
    context.report({
      node,
      message:
        `The function has ${lines} lines: split it below ${MAX_FUNCTION_LINES}, or say why not in "// size: …"`,
    });
  };
  return { FunctionDeclaration: visit, FunctionExpression: visit, ArrowFunctionExpression: visit };
}

/** The rules, for `deno lint`. */
const plugin: Deno.lint.Plugin = {
  name: "size",
  rules: { "file": { create: checkFile }, "function": { create: checkFunction } },
};

export default plugin;
