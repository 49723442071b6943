import type { Static } from 'typebox';
import {
  type Candidate,
  candidateOfMessages,
  candidateOfOutput,
  candidateOfTranscript,
  type ToolCallText,
  type TranscriptLine,
} from '../language/judge/rubric.ts';
import { type EvaluateBody, MAX_CHARACTERS, METADATA_MAX_BYTES } from './schemas/judge.ts';
import { validationFailed } from './validation.ts';

type Evaluate = Static<typeof EvaluateBody>;
type Segment = { leg?: string; speaker?: unknown; start?: number; text: string };

/** Reads the candidate from a body, or the id of its call. @throws TandemError VALIDATION_FAILED */
export function readCandidate(body: Evaluate): { candidate: Candidate } | { callId: string } {
  requireOne(body, ['rubric_id', 'questions']);
  const [kind] = requireOne(body, ['output', 'transcript', 'messages', 'call_id']);
  const { metadata, call_id: callId } = body;
  if (metadata !== undefined && Buffer.byteLength(JSON.stringify(metadata)) > METADATA_MAX_BYTES) {
    throw validationFailed([{ path: 'metadata', message: `must be at most ${METADATA_MAX_BYTES} bytes of JSON` }]);
  }
  if (callId !== undefined) return { callId };
  return { candidate: requireValidCandidate(candidateOf(body), kind!) };
}

/** @throws TandemError VALIDATION_FAILED if the candidate is blank or too long */
export function requireValidCandidate(candidate: Candidate, path: string): Candidate {
  const characters = candidate.texts.reduce((sum, text) => sum + text.length, 0);
  if (characters > MAX_CHARACTERS) {
    throw validationFailed([{ path, message: `must have at most ${MAX_CHARACTERS} characters` }]);
  }
  if (!candidate.texts.some((text) => /\S/.test(text))) {
    throw validationFailed([{ path, message: 'must not be blank' }]);
  }
  return candidate;
}

function candidateOf({ output, transcript, messages = [] }: Evaluate): Candidate {
  if (output !== undefined) return candidateOfOutput(output);
  if (transcript !== undefined) {
    const segments = typeof transcript === 'string' ? [{ text: transcript }] : transcript.segments;
    return candidateOfTranscript(segments.map(transcriptLine));
  }
  return candidateOfMessages(
    messages.map(({ role, content, tool_calls: calls }, index) => ({
      role,
      content: textOf(content, `messages.${index}.content`),
      calls: callsIn(calls),
    })),
  );
}

function transcriptLine({ leg, speaker, start, text }: Segment): TranscriptLine {
  const name = leg ?? speaker;
  return { ...(typeof name === 'string' && { speaker: name }), ...(start !== undefined && { start }), text };
}

/** Joins the content parts of a message with line breaks. */
function textOf(content: unknown, path: string): string {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : '';
  return content
    .map(({ type, text }: { type: string; text?: string }, index) => {
      if (type === 'text' && text !== undefined) return text;
      throw validationFailed([{ path: `${path}.${index}`, message: 'must be text. Other content is not supported' }]);
    })
    .join('\n');
}

/** Skips tool calls other than function calls. */
function callsIn(calls: unknown): ToolCallText[] {
  return (Array.isArray(calls) ? calls : []).flatMap((call) => {
    const { name, arguments: written } = call?.function ?? {};
    return typeof name === 'string' && typeof written === 'string' ? [{ name, arguments: written }] : [];
  });
}

function requireOne<Name extends keyof Evaluate>(body: Evaluate, names: readonly Name[]): Name[] {
  const given = names.filter((name) => body[name] !== undefined);
  if (given.length === 1) return given;
  const message = `is required, or one of ${names.slice(1).join(', ')}. Send exactly one`;
  throw validationFailed([{ path: names[0]!, message }]);
}
