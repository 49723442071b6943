import { type Static, Type } from 'typebox';

const MAX_CHARACTERS = 100_000;

const ContentParts = Type.Array(
  Type.Object(
    { type: Type.String({ maxLength: 64 }), text: Type.Optional(Type.String({ maxLength: MAX_CHARACTERS })) },
    { additionalProperties: true },
  ),
  { maxItems: 100, description: 'Content parts in the format of OpenAI. Parts that are not text are ignored.' },
);

const MessageSchema = Type.Object(
  {
    role: Type.String({ maxLength: 32 }),
    content: Type.Optional(Type.Union([Type.String({ maxLength: MAX_CHARACTERS }), ContentParts, Type.Null()])),
  },
  { additionalProperties: true },
);

/** Chat messages in OpenAI's format. */
export function messagesSchema({ maxItems, description }: { maxItems: number; description: string }) {
  return Type.Array(MessageSchema, { minItems: 1, maxItems, description });
}

type Message = Static<typeof MessageSchema>;

/** Joins the content of a message to one text. */
export function readMessage({ role, content }: Message): { role: string; content: string } {
  if (!Array.isArray(content)) return { role, content: content ?? '' };
  return { role, content: content.map(({ type, text }) => (type === 'text' ? (text ?? '') : '')).join('\n') };
}

/** Formats a conversation in turns that `language/memory/` recognises. Empty if it has no text. */
export function textOfMessages(messages: readonly Message[]): string {
  return messages
    .map((message) => ({ ...readMessage(message), speaker: speakerOf(message) }))
    .filter(({ speaker, content }) => speaker !== null && content.replaceAll('\0', '').trim() !== '')
    .map(({ speaker, content }) => `${speaker}: ${content.trim()}`)
    .join('\n');
}

/** Null for instructions and tool results, which are not part of the conversation. */
function speakerOf(message: Message): string | null {
  const label = message.role === 'user' ? 'User' : message.role === 'assistant' ? 'Assistant' : null;
  const { name } = message as { name?: unknown };
  if (label === null || typeof name !== 'string') return label;
  return (
    name
      .replace(/[\p{Cc}\s:]+/gu, ' ')
      .trim()
      .slice(0, LONGEST_SPEAKER)
      .toWellFormed() || label
  );
}

/** Lines with a longer label do not count as turns. */
const LONGEST_SPEAKER = 39;
