import { Type } from 'typebox';
import type { LanguageModel } from '../../language/llm.ts';

export const ModelSchema = Type.Object({
  id: Type.String({ description: 'What requests name.', examples: ['qwen3-4b'] }),
  object: Type.Literal('model'),
  created: Type.Integer({ description: 'Seconds since 1970; 0 where nobody says.', examples: [1767225600] }),
  owned_by: Type.String({ examples: ['library'] }),
  type: Type.Enum(['chat', 'stt', 'tts', 'judge']),
  resolves_to: Type.Optional(
    Type.String({ description: 'Of an alias: the id that it stands for at the moment.', examples: ['qwen3-4b'] }),
  ),
  context_tokens: Type.Optional(
    Type.Integer({ description: 'Tokens of prompt and answer together, where it is known.', examples: [32768] }),
  ),
});

export interface PublicModel {
  id: string;
  object: 'model';
  created: number;
  owned_by: string;
  type: 'chat' | 'stt' | 'tts' | 'judge';
  resolves_to?: string;
  context_tokens?: number;
}

export function presentLanguageModel({ id, created, ownedBy, contextTokens }: LanguageModel): PublicModel {
  const context = contextTokens === null ? {} : { context_tokens: contextTokens };
  return { id, object: 'model', created, owned_by: ownedBy, type: 'chat', ...context };
}

/** Names that start with `jev-` are for judging. */
export function presentAlias(name: string, target: PublicModel): PublicModel {
  const type = name.startsWith('jev-') ? 'judge' : 'chat';
  return { ...target, id: name, owned_by: 'tandem', type, resolves_to: target.id };
}

/** Such as `pocketsphinx/en-us`. */
export function presentRecogniser(name: string): PublicModel {
  return { id: name, object: 'model', created: 0, owned_by: name.replace(/\/.*$/, ''), type: 'stt' };
}

export function presentVoiceTier(tier: 'quality' | 'fast'): PublicModel {
  const id = tier === 'quality' ? 'svc Quality' : 'svc Fast';
  return { id, object: 'model', created: 0, owned_by: 'tandem', type: 'tts' };
}
