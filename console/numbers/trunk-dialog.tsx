import { api, dataOf } from '../app/api.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { notifyDone } from '../parts/notify.ts';
import { trunkFormText as text } from '../text/trunks.ts';
import { refreshNumbers, type Trunk } from './queries.ts';
import { changesOf, newTrunkOf } from './trunk-fields.ts';
import { TrunkForm } from './trunk-form.tsx';

interface TrunkDialogProps {
  /** Edits this trunk. Omitted: adds one. */
  trunk?: Trunk;
  isOpen: boolean;
  onClose: () => void;
  onSaved?: (trunk: Trunk) => void;
}

export function TrunkDialog({ trunk, isOpen, onClose, onSaved }: TrunkDialogProps) {
  const save = async (fields: Record<string, string>) => {
    const saved = await dataOf(
      trunk === undefined
        ? api.POST('/dialer/trunks', { body: newTrunkOf(fields) })
        : api.PATCH('/dialer/trunks/{id}', { params: { path: { id: trunk.id } }, body: changesOf(fields, trunk) }),
    );
    await refreshNumbers();
    notifyDone(trunk === undefined ? text.added(saved.name) : text.saved(saved.name));
    onSaved?.(saved);
  };
  return (
    <FormDialog
      title={trunk === undefined ? text.addTitle : text.editTitle(trunk.name)}
      submitLabel={trunk === undefined ? text.submitAdd : text.submitEdit}
      size="lg"
      isOpen={isOpen}
      onClose={onClose}
      onSubmit={save}
    >
      <TrunkForm trunk={trunk} />
    </FormDialog>
  );
}
