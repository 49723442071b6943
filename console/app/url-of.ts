import { currentWorkspaceId } from './workspace.ts';

/**
 * Address of an operation that the browser opens itself, such as a download or a stream. The cookie authenticates it.
 */
export function urlOf(path: string, query: Record<string, string | undefined> = {}): string {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
  const workspace = currentWorkspaceId();
  if (workspace !== null) url.searchParams.set('workspace_id', workspace);
  return url.href;
}
