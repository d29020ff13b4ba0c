import { lexer, type Token, type Tokens } from "marked";
import type { ComponentChildren, VNode } from "preact";
import { Text } from "./text";
import "./markdown.css";

// marked only parses. Elements are built here, so text never becomes HTML. Raw HTML is shown as text, pictures as links,
// and links lead only to the web, to mail and within nacre.
const LINKS = /^(https?:|mailto:)/i;

/** Markdown of any origin. `names` resolves `[[name]]`. */
export function Markdown({ children, names }: { children: string; names?: (name: string) => string | null }) {
  return <div class="text markdown">{blocks(parsed(children), names ?? (() => null))}</div>;
}

type Names = (name: string) => string | null;

// Ten thousand nested quotes exhaust the stack of marked and of the browser, and a huge table blocks the browser for ten
// seconds. Such texts are shown as source, so that they can be read and removed.
const LONGEST = 100_000;
const DEEPEST = 40;

function parsed(text: string): Token[] {
  const plain: Token[] = [{ type: "html", raw: text, text, pre: false, block: true }];
  if (text.length > LONGEST) return plain;
  try {
    const found = lexer(text, { gfm: true });
    return isDeeper(found, DEEPEST) ? plain : found;
  } catch {
    return plain;
  }
}

function isDeeper(tokens: Token[], levels: number): boolean {
  if (levels === 0) return tokens.length > 0;
  return tokens.some((one) => isDeeper("items" in one ? one.items : ("tokens" in one && one.tokens) || [], levels - 1));
}

function blocks(tokens: Token[], names: Names): ComponentChildren {
  return tokens.map((token, index) => <Block key={index} token={token} names={names} />);
}

function Block({ token, names }: { token: Token; names: Names }): VNode | null {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return heading(token as Tokens.Heading, names);
    case "code":
      return (
        <pre>
          <code>
            <Text>{(token as Tokens.Code).text}</Text>
          </code>
        </pre>
      );
    case "blockquote":
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens, names)}</blockquote>;
    case "list":
      return list(token as Tokens.List, names);
    case "table":
      return table(token as Tokens.Table, names);
    case "hr":
      return <hr />;
    case "text":
      return <>{inline((token as Tokens.Text).tokens ?? [token], names)}</>;
    case "html":
      return (
        <p>
          <Text>{token.raw.trim()}</Text>
        </p>
      );
    default:
      return <p>{inline((token as Tokens.Paragraph).tokens ?? [], names)}</p>;
  }
}

// The page has the first heading level, its parts the second; a memory's headings start below.
function heading(token: Tokens.Heading, names: Names): VNode {
  const content = inline(token.tokens, names);
  return token.depth === 1 ? <h3>{content}</h3> : <h4>{content}</h4>;
}

function list(token: Tokens.List, names: Names): VNode {
  const items = token.items.map((item, index) => (
    <li key={index} class={item.task ? "task" : undefined}>
      {item.task && <input type="checkbox" checked={item.checked ?? false} disabled aria-label="✓" />}
      {blocks(
        item.tokens.filter((one) => one.type !== "checkbox"),
        names,
      )}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function table(token: Tokens.Table, names: Names): VNode {
  return (
    <div class="markdown-table">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, index) => (
              <th key={index}>{inline(cell.tokens, names)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{inline(cell.tokens, names)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inline(tokens: Token[], names: Names): ComponentChildren {
  return tokens.map((token, index) => <Inline key={index} token={token} names={names} />);
}

function Inline({ token, names }: { token: Token; names: Names }): VNode {
  switch (token.type) {
    case "strong":
      return <strong>{inline((token as Tokens.Strong).tokens, names)}</strong>;
    case "em":
      return <em>{inline((token as Tokens.Em).tokens, names)}</em>;
    case "del":
      return <del>{inline((token as Tokens.Del).tokens, names)}</del>;
    case "codespan":
      return (
        <code>
          <Text>{(token as Tokens.Codespan).text}</Text>
        </code>
      );
    case "br":
      return <br />;
    case "link":
      return link(token as Tokens.Link, names);
    case "image":
      return outward((token as Tokens.Image).href, <Text>{(token as Tokens.Image).text || token.raw}</Text>, token.raw);
    case "escape":
      return <Text>{(token as Tokens.Escape).text}</Text>;
    case "text":
      return wiki(token as Tokens.Text, names);
    default:
      return <Text>{token.raw}</Text>;
  }
}

function link(token: Tokens.Link, names: Names): VNode {
  return outward(token.href, inline(token.tokens, names), token.raw);
}

function outward(href: string, content: ComponentChildren, raw: string): VNode {
  if (!LINKS.test(href)) return <Text>{raw}</Text>;
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
      {content}
    </a>
  );
}

function wiki(token: Tokens.Text, names: Names): VNode {
  if (token.tokens?.length) return <>{inline(token.tokens, names)}</>;
  const parts = decoded(token.text).split(/(\[\[[^[\]\n]{1,200}\]\])/);
  return (
    <>
      {parts.map((part, index) => {
        const name = part.startsWith("[[") && part.endsWith("]]") ? part.slice(2, -2) : null;
        const to = name && names(name);
        return to ? (
          <a key={index} href={to}>
            <Text>{name}</Text>
          </a>
        ) : (
          <Text key={index}>{part}</Text>
        );
      })}
    </>
  );
}

/** The common entities in Markdown. */
function decoded(text: string): string {
  const known: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };
  return text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => known[entity] ?? entity);
}
