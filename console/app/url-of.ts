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

/**
 * Rewrites a presigned URL to this page's origin. The console's policy only allows audio from its own origin, and the
 * server may be configured with another name. The signature does not cover the host.
 */
export function ownMediaUrl(signed: string): string {
  const { pathname, search } = new URL(signed);
  return pathname.startsWith('/media/') ? `${location.origin}${pathname}${search}` : signed;
}
