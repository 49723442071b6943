import type { Static } from 'typebox';
import {
  type Candidate,
  candidateOfMessages,
  candidateOfOutput,
  candidateOfTranscript,
  type SpokenCall,
} from '../language/judge/rubric.ts';
import { type EvaluateBody, METADATA_MAX_BYTES, MOST_CHARACTERS } from './schemas/judge.ts';
import { validationFailed } from './validation.ts';

type Evaluate = Static<typeof EvaluateBody>;

/** What a body says is to be judged; a call is to be looked up. @throws TandemError VALIDATION_FAILED */
export function readCandidate(body: Evaluate): { candidate: Candidate } | { callId: string } {
  requireOne(body, ['rubric_id', 'questions']);
  const [kind] = requireOne(body, ['output', 'transcript', 'messages', 'call_id']);
  const { metadata, call_id: callId } = body;
  if (metadata !== undefined && Buffer.byteLength(JSON.stringify(metadata)) > METADATA_MAX_BYTES) {
    throw validationFailed([{ path: 'metadata', message: `must be at most ${METADATA_MAX_BYTES} bytes as JSON` }]);
  }
  if (callId !== undefined) return { callId };
  return { candidate: requireSomething(candidateOf(body), kind!) };
}

/** @throws TandemError VALIDATION_FAILED when there is nothing to judge, or too much */
export function requireSomething(candidate: Candidate, path: string): Candidate {
  const characters = candidate.texts.reduce((sum, text) => sum + text.length, 0);
  if (characters > MOST_CHARACTERS) {
    throw validationFailed([{ path, message: `has more than ${MOST_CHARACTERS} characters` }]);
  }
  if (!candidate.texts.some((text) => /\S/.test(text))) {
    throw validationFailed([{ path, message: 'has nothing in it that could be judged' }]);
  }
  return candidate;
}

function candidateOf({ output, transcript, messages = [] }: Evaluate): Candidate {
  if (output !== undefined) return candidateOfOutput(output);
  if (transcript !== undefined) return candidateOfTranscript(transcript.segments);
  return candidateOfMessages(
    messages.map(({ role, content, tool_calls: calls }, index) => ({
      role,
      content: textOf(content, `messages.${index}.content`),
      calls: callsIn(calls),
    })),
  );
}

/** Parts as chat completions have them are lines of one text. */
function textOf(content: unknown, path: string): string {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : '';
  return content
    .map(({ type, text }: { type: string; text?: string }, index) => {
      if (type === 'text' && text !== undefined) return text;
      throw validationFailed([{ path: `${path}.${index}`, message: 'is no text, and nothing else is understood' }]);
    })
    .join('\n');
}

/** What is no call of a function is left out. */
function callsIn(calls: unknown): SpokenCall[] {
  return (Array.isArray(calls) ? calls : []).flatMap((call) => {
    const { name, arguments: written } = call?.function ?? {};
    return typeof name === 'string' && typeof written === 'string' ? [{ name, arguments: written }] : [];
  });
}

function requireOne<Name extends keyof Evaluate>(body: Evaluate, names: readonly Name[]): Name[] {
  const given = names.filter((name) => body[name] !== undefined);
  if (given.length === 1) return given;
  throw validationFailed([{ path: names[0]!, message: `or exactly one other of ${names.join(', ')} must be sent` }]);
}
