/**
 * Time zone of the viewer, as an IANA name. UTC if the browser reports none, such as `Etc/Unknown`, or only an offset,
 * which the server rejects.
 */
export function viewerTimeZone(reported = Intl.DateTimeFormat().resolvedOptions().timeZone): string {
  return /^[A-Z]/i.test(reported) && reported !== 'Etc/Unknown' ? reported : 'UTC';
}
