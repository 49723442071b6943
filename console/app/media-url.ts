/**
 * Rewrites a presigned URL to the origin of the page. The console's policy only allows audio from its own origin, and
 * the server may be configured with another name. The signature does not cover the host.
 */
export function ownMediaUrl(signed: string, origin: string): string {
  const { pathname, search, searchParams } = new URL(signed);
  // The path of an object in a bucket may begin like this, too.
  const isOwn = pathname.startsWith('/media/') && searchParams.has('signature');
  return isOwn ? `${origin}${pathname}${search}` : signed;
}
