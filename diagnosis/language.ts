import type { Config } from '../config.ts';
import type { LanguageModels } from '../language/llm.ts';
import { openLanguageModels } from '../language/open-language-models.ts';
import { systemClock } from '../runtime/clock.ts';
import { type Finding, ok, reasonOf, warn } from './finding.ts';

const CHECK = 'language model';

/** Checks the chat model, the connection to it, and that the settings name existing models. */
export async function checkLanguage(config: Config): Promise<Finding[]> {
  if (config.llmBaseUrl === null && config.llmModelPath === null) return [noModel(config)];
  // Models named in the settings count as listed, so list without them.
  const models = await openLanguageModels({ ...config, llmModel: null, llmAliases: new Map() }, { clock: systemClock });
  try {
    const listed = (await models.list()).models.map(({ id }) => id);
    return [checkDefaultModel(config, listed), ...unknownNames(config, listed)];
  } catch (error) {
    return [warn(CHECK, reasonOf(error), adviceFor(config))];
  } finally {
    await models.close();
  }
}

/** Checks a running server with its open models. */
export async function checkRunningLanguage(config: Config, models: Pick<LanguageModels, 'list'>): Promise<Finding[]> {
  if (config.llmBaseUrl === null && config.llmModelPath === null) return [noModel(config)];
  try {
    return [
      checkDefaultModel(
        config,
        (await models.list()).models.map(({ id }) => id),
      ),
    ];
  } catch (error) {
    return [warn(CHECK, reasonOf(error), adviceFor(config))];
  }
}

function noModel({ llmModel, llmAliases, llmApiKey }: Config): Finding {
  if (llmModel !== null || llmAliases.size > 0 || llmApiKey !== null) {
    return warn(CHECK, 'LLM_BASE_URL is not set: the other LLM_ settings do nothing.', 'Set it, or LLM_MODEL_PATH.');
  }
  return ok(CHECK, 'none: rules correct texts; chat and judge answer LLM_NOT_CONFIGURED without LLM_BASE_URL');
}

function checkDefaultModel({ llmBaseUrl, llmModel }: Config, [first, ...others]: readonly string[]): Finding {
  const defaultModel = (llmBaseUrl === null ? null : llmModel) ?? first;
  if (defaultModel === undefined) {
    return warn(CHECK, 'The server responds and lists no model.', 'Load one there, or name one with LLM_MODEL.');
  }
  const count = first === undefined ? 0 : others.length + 1;
  const where = llmBaseUrl === null ? 'a file on this machine' : `the server responds and lists ${count}`;
  return ok(CHECK, `chats are answered by ${defaultModel}; ${where}`);
}

/** Warns only, because some servers accept several names for a model. */
function unknownNames({ llmBaseUrl, llmModel, llmAliases }: Config, listed: readonly string[]): Finding[] {
  const named: [string, string][] = llmModel === null ? [] : [['LLM_MODEL', llmModel]];
  if (llmBaseUrl === null && llmModel !== null) {
    return [warn('LLM_MODEL', 'It names a model of a server, and LLM_BASE_URL is not set.', 'Leave it out.')];
  }
  return [...named, ...[...llmAliases].map(([name, id]) => [`alias ${name}`, id] as const)]
    .filter(([, id]) => !listed.includes(id))
    .map(([name, id]) => {
      const some = listed.slice(0, 5).join(', ') || 'none';
      return warn(name, `${id} is not on the list of models.`, `Take one that is, such as: ${some}.`);
    });
}

function adviceFor({ llmBaseUrl }: Config): string {
  if (llmBaseUrl !== null) return 'Start the server, or correct LLM_BASE_URL (it ends in /v1 mostly) and LLM_API_KEY.';
  return 'Look at LLM_MODEL_PATH: it names a GGUF file, and the package node-llama-cpp has to be there.';
}
