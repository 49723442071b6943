import { Type } from 'typebox';
import type { LanguageModel } from '../../language/llm.ts';

export const ModelSchema = Type.Object({
  id: Type.String({ description: 'Id to use in requests.', examples: ['qwen3-4b'] }),
  object: Type.Literal('model'),
  created: Type.Integer({ description: 'Creation time, in Unix seconds. 0 if unknown.', examples: [1767225600] }),
  owned_by: Type.String({ description: 'Owner or engine.', examples: ['library'] }),
  type: Type.Enum(['chat', 'stt', 'tts', 'judge', 'embedding'], { description: 'Purpose of the model.' }),
  resolves_to: Type.Optional(
    Type.String({ description: 'On an alias: the id it currently resolves to.', examples: ['qwen3-4b'] }),
  ),
  context_tokens: Type.Optional(
    Type.Integer({ description: 'Context length, in tokens, if known.', examples: [32768] }),
  ),
});

export interface PublicModel {
  id: string;
  object: 'model';
  created: number;
  owned_by: string;
  type: 'chat' | 'stt' | 'tts' | 'judge' | 'embedding';
  resolves_to?: string;
  context_tokens?: number;
}

export function presentLanguageModel({ id, created, ownedBy, contextTokens }: LanguageModel): PublicModel {
  const context = contextTokens === null ? {} : { context_tokens: contextTokens };
  return { id, object: 'model', created, owned_by: ownedBy, type: 'chat', ...context };
}

/** Aliases that start with `jev-` are judge models. */
export function presentAlias(name: string, target: PublicModel): PublicModel {
  const type = name.startsWith('jev-') ? 'judge' : 'chat';
  return { ...target, id: name, owned_by: 'tandem', type, resolves_to: target.id };
}

/** `name` is for example `pocketsphinx/en-us`. */
export function presentRecogniser(name: string): PublicModel {
  return { id: name, object: 'model', created: 0, owned_by: name.replace(/\/.*$/, ''), type: 'stt' };
}

/** `name` is for example `openai:text-embedding-3-small`, or the built-in embedder's. */
export function presentEmbedder(name: string): PublicModel {
  const owner = /^(.+?):/.exec(name)?.[1] ?? 'tandem';
  return { id: name, object: 'model', created: 0, owned_by: owner, type: 'embedding' };
}

export function presentVoiceTier(tier: 'quality' | 'fast'): PublicModel {
  const id = tier === 'quality' ? 'svc Quality' : 'svc Fast';
  return { id, object: 'model', created: 0, owned_by: 'tandem', type: 'tts' };
}
