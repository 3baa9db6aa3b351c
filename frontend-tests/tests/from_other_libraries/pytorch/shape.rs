//! Shapes, views and indices.

use crate::table::section;
use keyway::nn::PadMode;
use keyway::prelude::*;
use keyway::tensor::Reduce;

section! {
    shape "Shapes and views"
    "x = torch.arange(24.).reshape(2, 3, 4)" { let x = Tensor::arange(0.0, 24.0)?.reshape((2, 3, 4))?; }
    "x.shape" => { x.shape() };
    "x.size()" => { x.shape() };
    "x.size(-1)" => { x.dim(-1)? };
    "x.dim()" => { x.rank() } "`dim(d)` is the size of one dimension";
    "x.ndim" => { x.rank() };
    "x.numel()" => { x.elem_count() };
    "len(x)" => { x.dim(0)? };
    "a, b, c = x.shape" => { let (a, b, c) = x.dims3()?; } "`dims1` to `dims5`; the error says how many there are";
    "x.view(6, 4)" => { x.view((6, 4))? };
    "x.view(-1)" => { x.view(-1)? } "`flatten_all` copies where no view can be";
    "x.view_as(x)" => { x.view_as(&x)? };
    "x.reshape(2, -1)" => { x.reshape((2, -1))? };
    "x.reshape_as(x)" => { x.reshape_as(&x)? };
    "x.flatten()" => { x.flatten_all()? };
    "x.ravel()" => { x.flatten_all()? };
    "torch.flatten(x, 1)" => { x.flatten_from(1)? };
    "x.flatten(0, 1)" => { x.flatten(0, 1)? };
    "x.unflatten(2, (2, 2))" => { x.unflatten(2, (2, 2))? };
    "x.squeeze()" => { x.squeeze(..)? };
    "x.squeeze(0)" => { x.squeeze(0)? };
    "x.unsqueeze(-1)" => { x.unsqueeze(-1)? };
    "x.transpose(0, 1)" => { x.transpose(0, 1)? };
    "x.swapaxes(0, 1)" => { x.swapaxes(0, 1)? };
    "x[0].t()" => { x.i(0)?.t()? };
    "x.mT" => { x.transpose(-2, -1)? };
    "x.permute(2, 0, 1)" => { x.permute((2, 0, 1))? };
    "x.movedim(0, -1)" => { x.movedim(0, -1)? };
    "x.moveaxis(0, -1)" => { x.moveaxis(0, -1)? };
    "x[:1].expand(5, 3, 4)" => { x.i(..1)?.expand((5, 3, 4))? };
    "x.expand_as(x)" => { x.expand_as(&x)? };
    "x.broadcast_to((5, 2, 3, 4))" => { x.broadcast_to((5, 2, 3, 4))? };
    "x.repeat(1, 2, 1)" => { x.repeat((1, 2, 1))? };
    "x.tile(2)" => { x.tile(2)? };
    "x.repeat_interleave(2, dim=1)" => { x.repeat_interleave(2, 1)? } "`repeat_interleave_each` with a tensor of counts";
    "torch.cat([x, x], dim=1)" => { Tensor::cat(&[&x, &x], 1)? };
    "torch.concat([x, x])" => { Tensor::cat(&[&x, &x], 0)? };
    "torch.stack([x, x])" => { Tensor::stack(&[&x, &x], 0)? };
    "torch.chunk(x, 2, dim=2)" => { x.chunk(2, 2)? };
    "torch.split(x, 2, dim=2)" => { x.split(2, 2)? };
    "torch.split(x, [1, 3], dim=2)" => { x.split_sizes(&[1, 3], 2)? };
    "torch.tensor_split(x, 3, dim=2)" => { x.tensor_split(3, 2)? };
    "torch.tensor_split(x, (1, 2), dim=2)" => { x.tensor_split_at(&[1, 2], 2)? };
    "torch.unbind(x)" => { x.unbind(0)? };
    "x.unfold(2, 2, 1)" => { x.unfold(2, 2, 1)? };
    "x.diagonal(0, 1, 2)" => { x.diagonal_with(0, 1, 2)? };
    "torch.diagonal(x)" => { x.diagonal()? };
    "x.as_strided((2, 2), (1, 2))" => { x.as_strided((2, 2), (1, 2))? };
    "torch.flip(x, [0])" => { x.flip(0)? };
    "torch.roll(x, 1, 2)" => { x.roll(1, 2)? };
    "F.pad(x, (1, 2))" => { x.pad((1, 2))? } "widths from the last dimension on, as there";
    "F.pad(x, (1, 1), mode='reflect')" => { x.pad_with((1, 1), PadMode::Reflect, 0.0)? };
}

section! {
    index "Indexing"
    "x = torch.arange(24.).reshape(2, 3, 4); mask = x > 20; at = torch.tensor([2, 0]); to = torch.zeros(1, 3, 4, dtype=torch.int64)" {
        let x = Tensor::arange(0.0, 24.0)?.reshape((2, 3, 4))?;
        let mask = x.gt(20.0)?;
        let at = Tensor::new([2i64, 0])?;
        let to = Tensor::zeros_with((1, 3, 4), DType::I64)?;
    }
    "x[0]" => { x.i(0)? };
    "x[-1]" => { x.i(-1)? };
    "x[0, 1, 2]" => { x.i((0, 1, 2))? };
    "x[:, 1:3]" => { x.i((.., 1..3))? };
    "x[:, -2:]" => { x.i((.., -2..))? };
    "x[..., 0]" => { x.i((Ellipsis, 0))? } "`..` is one whole dimension, as `:` there";
    "x[:, :, ::2]" => { x.i((.., .., StepBy(.., 2)))? };
    "x[None]" => { x.i(NewAxis)? };
    "x[..., None]" => { x.i((Ellipsis, NewAxis))? };
    "x[mask]" => { x.i(&mask)? };
    "x[:, at]" => { x.i((.., &at))? };
    "x[0, at, :2]" => { x.i((0, &at, ..2))? };
    "x[0, 1, 2] = 5." => { x.i((0, 1, 2))?.fill_(5.0)?; x } "a view, written in place";
    "x[:, 0] = torch.zeros(2, 4)" => { x.i((.., 0))?.copy_(&Tensor::zeros((2, 4))?)?; x };
    "x[mask] = 0." => { x.masked_fill_(&mask, 0.0)? };
    "x[:, at] += 1." => { x.index_put_with_(&[None, Some(&at)], 1.0, true)? } "adds also where an index comes twice";
    "x.select(1, 0)" => { x.select(1, 0)? };
    "x.narrow(2, 1, 2)" => { x.narrow(2, 1, 2)? };
    "x.index_select(1, at)" => { x.index_select(1, &at)? };
    "x.gather(0, to)" => { x.gather(0, &to)? };
    "x.scatter(0, to, 7.)" => { x.scatter(0, &to, 7.0)? };
    "x.scatter_(0, to, x[:1].clone())" => { x.scatter_(0, &to, &x.i(..1)?.copy()?)? };
    "x.scatter_add(0, to, x[:1])" => { x.scatter_add(0, &to, &x.i(..1)?)? };
    "x.index_add(1, at, x[:, :2])" => { x.index_add(1, &at, &x.i((.., ..2))?)? };
    "x.index_copy(1, at, x[:, :2])" => { x.index_copy(1, &at, &x.i((.., ..2))?)? };
    "x.index_put((mask,), torch.tensor(0.))" => { x.index_put(&[Some(&mask)], 0.0)? };
    "x.index_fill(1, at, 0.)" => { x.index_fill(1, &at, 0.0)? };
    "x.put(at, torch.tensor([7., 8.]))" => { x.put(&at, &Tensor::new([7.0f32, 8.0])?, false)? };
    "x.take(at)" => { x.take(&at)? };
    "torch.take_along_dim(x, to, 0)" => { x.take_along_dim(&to, 0)? };
    "x.masked_fill(mask, 0.)" => { x.masked_fill(&mask, 0.0)? };
    "x.masked_select(mask)" => { x.masked_select(&mask)? };
    "torch.where(mask, x, 0.)" => { mask.where_cond(&x, 0.0)? };
    "torch.nonzero(mask)" => { mask.nonzero()? };
    "torch.argwhere(mask)" => { mask.nonzero()? };
    "torch.sort(x, dim=2, descending=True)" => { x.sort_with(2, true, false)? };
    "x.sort()" => { x.sort(-1)? };
    "torch.argsort(x)" => { x.argsort(-1)? };
    "torch.topk(x, 2)" => { x.topk(2, -1)? };
    "torch.unique(at)" => { at.unique()? } "`unique_all` has inverse and counts";
    "torch.unique_consecutive(at)" => { at.unique_consecutive()? };
    "torch.unique(x, dim=0)" => { x.unique_dim(0)?.values } "with inverse and counts";
    "torch.unique_consecutive(x, dim=0)" => { x.unique_consecutive_dim(0)?.values };
    "torch.isin(x, at)" => { x.isin(&at)? };
    "torch.searchsorted(x[0, 0], torch.tensor([1.5]))" => { x.i((0, 0))?.searchsorted(&Tensor::new([1.5f32])?)? };
    "torch.bucketize(torch.tensor([1.5]), x[0, 0])" => { Tensor::new([1.5f32])?.bucketize(&x.i((0, 0))?)? };
    "x.scatter_reduce(0, to, x[:1], 'amax')" => { x.scatter_reduce(0, &to, &x.i(..1)?, Reduce::Amax)? };
    "torch.bincount(at)" => { at.bincount()? };
    "torch.bincount(at, weights=x[0, 0, :2], minlength=4)" => { at.bincount_with(&x.i((0, 0, ..2))?, 4)? } "the sums have the dtype of the weights";
}
