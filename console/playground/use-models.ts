import { useQuery } from '@tanstack/react-query';
import { modelsQuery } from './queries.ts';

export interface Models {
  /** Ids and aliases. */
  ids: string[];
  /** False until the list is loaded. */
  isMissing: boolean;
  error: Error | null;
}

/** Available models of a kind. */
export function useModels(type: 'chat' | 'judge'): Models {
  const { data, error } = useQuery(modelsQuery);
  const ids = (data ?? []).filter((model) => model.type === type).map(({ id }) => id);
  return { ids, isMissing: data !== undefined && ids.length === 0, error };
}
