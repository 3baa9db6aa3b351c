//! Functions that arrange elements, and that take them by index.

use super::{Call, FAR, Table, b, f, far, l, leaf, of};
use keyway::nn::PadMode;
use keyway::tensor::Reduce;
use keyway::{DType, Tensor};

#[allow(deprecated, reason = "`get` is there to say what it is called")]
pub fn shaped() -> Table {
    table! {
        reshape: f(&[2]).reshape(3), f(&[2]).reshape((-1, -1)), f(&[2]).reshape(-2), f(&[2]).reshape(FAR);
        view: f(&[2]).view(3), f(&[2, 3]).transpose(0, 1).unwrap().view(6);
        reshape_as: f(&[2]).reshape_as(&f(&[3]));
        view_as: f(&[2]).view_as(&f(&[3]));
        expand: f(&[2]).expand(3), f(&[2]).expand(-3), f(&[2]).expand(()), f(&[1]).expand(FAR);
        expand_as: f(&[2]).expand_as(&f(&[3]));
        broadcast_to: f(&[2]).broadcast_to(3), f(&[2]).broadcast_to(-3), f(&[1]).broadcast_to(FAR);
        flatten: f(&[2, 3]).flatten(0, 2), f(&[2, 3]).flatten(-3, 1), f(&[2, 3]).flatten(1, 0), f(&[2]).flatten(FAR, 0),
            Tensor::zeros((1usize << 40, 1usize << 40, 0)).unwrap().flatten(0, 1);
        flatten_from: f(&[2, 3]).flatten_from(2);
        flatten_to: f(&[2, 3]).flatten_to(-3);
        unflatten: f(&[6]).unflatten(1, (2, 3)), f(&[6]).unflatten(0, (4, 2)), f(&[6]).unflatten(0, (-1, -1)),
            f(&[6]).unflatten(0, (FAR, 2)), f(&[6]).unflatten(0, (-2, -3));
        permute: f(&[2, 3]).permute((0, 0)), f(&[2, 3]).permute(0), f(&[2, 3]).permute((0, 2));
        transpose: f(&[2, 3]).transpose(0, 2), f(&[2, 3]).transpose(-3, 0);
        swapaxes: f(&[2, 3]).swapaxes(0, 2), f(&[2, 3]).swapaxes(-3, 0), f(&[2, 3]).swapaxes(FAR, 0);
        t: f(&[2, 3, 4]).t();
        movedim: f(&[2, 3]).movedim(0, 2), f(&[2, 3]).movedim(-3, 0);
        moveaxis: f(&[2, 3]).moveaxis(0, 2), f(&[2, 3]).moveaxis(-3, 0);
        squeeze: f(&[1]).squeeze(1), f(&[1]).squeeze((0, 0));
        unsqueeze: f(&[1]).unsqueeze(3), f(&[1]).unsqueeze(-4);
        get: f(&[2]).get(2), f(&[2]).get(FAR);
        select: f(&[2]).select(1, 0), f(&[2]).select(0, 2), f(&[2]).select(0, -3), f(&[2]).select(0, FAR);
        slice: f(&[2]).slice(1, None, None, 1), f(&[2]).slice(0, None, None, 0), f(&[2]).slice(0, None, None, -1);
        narrow: f(&[2]).narrow(1, 0, 1), f(&[2]).narrow(-2, 0, 1), f(&[2]).narrow(0, 0, 3), f(&[2]).narrow(0, -3, 1),
            f(&[2]).narrow(0, 0, FAR), f(&[2]).narrow(0, FAR, 1), f(&[]).narrow(0, 0, 1);
        split: f(&[4]).split(2, 1), f(&[4]).split(2, -2), f(&[4]).split(0, 0), f(&[]).split(1, 0);
        split_sizes: f(&[4]).split_sizes(&[1, 2], 0), f(&[4]).split_sizes(&[4], 1), f(&[4]).split_sizes(&[FAR, 5], 0);
        chunk: f(&[4]).chunk(2, 1), f(&[4]).chunk(0, 0), f(&[4]).chunk(2, -2);
        tensor_split: f(&[4]).tensor_split(2, 1), f(&[4]).tensor_split(0, 0), f(&[4]).tensor_split(1 << 60, 0);
        tensor_split_at: f(&[4]).tensor_split_at(&[2], 1), f(&[4]).tensor_split_at(&[2], -2);
        unbind: f(&[4]).unbind(1), f(&[4]).unbind(-2), f(&[]).unbind(0);
        unfold: f(&[4]).unfold(1, 1, 1), f(&[4]).unfold(0, 5, 1), f(&[4]).unfold(0, 1, 0), f(&[4]).unfold(0, FAR, 1);
        diagonal: f(&[2]).diagonal(), f(&[2, 2]).diagonal_with(0, 0, 0), f(&[2, 2]).diagonal_with(0, 0, 2);
        as_strided: f(&[2]).as_strided(3, 1), f(&[2]).as_strided(1, (1, 1)), f(&[2]).as_strided(-1, 1),
            f(&[2]).as_strided_with(1, 1, FAR);
        cat: Tensor::cat(&[f(&[2]), f(&[2, 2])], 0), Tensor::cat(&[f(&[2])], 1), Tensor::cat::<Tensor>(&[], 0);
        stack: Tensor::stack(&[f(&[2]), f(&[3])], 0), Tensor::stack(&[f(&[2])], 2), Tensor::stack::<Tensor>(&[], 0);
        hstack: Tensor::hstack(&[f(&[2, 2]), f(&[3, 2])]), Tensor::hstack::<Tensor>(&[]);
        vstack: Tensor::vstack(&[f(&[2]), f(&[3])]), Tensor::vstack::<Tensor>(&[]);
        dstack: Tensor::dstack(&[f(&[2]), f(&[3])]), Tensor::dstack::<Tensor>(&[]);
        block_diag: Tensor::block_diag(&[f(&[2, 2, 2])]), Tensor::block_diag::<Tensor>(&[]);
        meshgrid: Tensor::meshgrid(&[f(&[2, 2])]), Tensor::meshgrid_with(&[f(&[2])], "no");
        flip: f(&[2]).flip(1), f(&[2]).flip((0, 0));
        fliplr: f(&[2]).fliplr();
        rot90: f(&[2]).rot90(), f(&[2, 2]).rot90_with(1, (0, 0)), f(&[2, 2]).rot90_with(1, (0, 2));
        roll: f(&[2]).roll(1, 1), f(&[2]).roll((1, 2), 0), f(&[2]).roll((1, 1), ..);
        diag: f(&[2, 2, 2]).diag(), f(&[]).diag(), f(&[2]).diag_with(i64::MAX);
        diag_embed: f(&[]).diag_embed(), f(&[2]).diag_embed_with(i64::MIN), f(&[2]).diag_embed_with(1i64 << 40);
        select_scatter: f(&[2, 3]).select_scatter(&f(&[3]), 2, 0), f(&[2, 3]).select_scatter(&f(&[2]), 0, 0),
            f(&[2, 3]).select_scatter(&f(&[3]), 0, 2);
        narrow_scatter: f(&[4]).narrow_scatter(&f(&[2]), 1, 0, 2), f(&[4]).narrow_scatter(&f(&[3]), 0, 0, 2),
            f(&[4]).narrow_scatter(&f(&[2]), 0, 3, 2);
        slice_scatter: f(&[4]).slice_scatter(&f(&[3]), 0, None, None, 2), f(&[4]).slice_scatter(&f(&[4]), 1, None, None, 1),
            f(&[4]).slice_scatter(&f(&[4]), 0, None, None, 0);
        diagonal_scatter: f(&[2]).diagonal_scatter(&f(&[2])), f(&[2, 2]).diagonal_scatter(&f(&[3])),
            f(&[2, 2]).diagonal_scatter_with(&f(&[2]), 0, 0, 0);
        broadcast_tensors: Tensor::broadcast_tensors(&[f(&[2]), f(&[3])]);
        broadcast_shapes: Tensor::broadcast_shapes(2, 3), Tensor::broadcast_shapes(2, -1);
        repeat: f(&[2]).repeat(-1), f(&[2, 2]).repeat(2), f(&[2]).repeat(FAR);
        tile: f(&[2]).tile(-1), f(&[2]).tile(FAR);
        repeat_interleave: f(&[2]).repeat_interleave(2, 1), f(&[2]).repeat_interleave(FAR, 0);
        repeat_interleave_each: f(&[2]).repeat_interleave_each(&l(&[3]), 0), f(&[2]).repeat_interleave_each(&l(&[2]), 1),
            f(&[2]).repeat_interleave_each(&f(&[2]), 0), f(&[2]).repeat_interleave_each(&l(&[2]).neg().unwrap(), 0),
            f(&[2]).repeat_interleave_each(&Tensor::new([i64::MAX, 1]).unwrap(), 0);
        pad: f(&[2]).pad((1, 1, 1, 1)), f(&[2]).pad(1), f(&[2]).pad((-3, 0)), f(&[2]).pad_with((9, 0), PadMode::Reflect, 0),
            f(&[2]).pad((FAR, 0));
        constant_pad: f(&[2]).constant_pad(&[1], 0), of(&[2], DType::U8).constant_pad(&[1, 1], 300);
        tril: f(&[2]).tril(), f(&[2]).tril_with(1), f(&[2]).tril_(), f(&[2]).tril_with_(1);
        triu: f(&[2]).triu(), f(&[2]).triu_with(1), f(&[2]).triu_(), f(&[2]).triu_with_(1);
    }
}

pub fn indexed() -> Table {
    table! {
        gather: f(&[2]).gather(1, &l(&[2])), f(&[2]).gather(0, &f(&[2])), f(&[2]).gather(0, &far());
        index: f(&[2]).index(&[None, Some(&l(&[1]))]), f(&[2]).index(&[Some(&f(&[1]))]), f(&[2]).index(&[Some(&b(&[3]))]),
            f(&[2]).index(&[Some(&far())]);
        index_put: f(&[2]).index_put(&[None, Some(&l(&[1]))], 1), f(&[2]).index_put(&[Some(&far())], 1),
            f(&[2]).index_put_(&[Some(&b(&[3]))], 1), leaf(&[2]).index_put_(&[Some(&l(&[1]))], 1),
            f(&[2]).index_put_with(&[Some(&l(&[1]))], &f(&[3]), true), f(&[2]).index_put_with_(&[Some(&l(&[1]))], &f(&[3]), true);
        index_add: f(&[2]).index_add(1, &l(&[1]), &f(&[1])), f(&[2]).index_add(0, &far(), &f(&[2])),
            f(&[2]).index_add_(0, &l(&[1]), &f(&[2])), f(&[2]).index_add_with(0, &l(&[1]), &f(&[2]), 2),
            f(&[2]).index_add_with_(0, &l(&[1]), &f(&[2]), 2);
        index_copy: f(&[2]).index_copy(1, &l(&[1]), 1), f(&[2]).index_copy_(0, &far(), &f(&[2]));
        index_reduce: f(&[2]).index_reduce(1, &l(&[1]), &f(&[1]), Reduce::Sum),
            f(&[2]).index_reduce_(0, &far(), &f(&[2]), Reduce::Mean),
            f(&[2]).index_reduce_with(0, &l(&[1]), &f(&[2]), Reduce::Prod, false);
        index_fill: f(&[2]).index_fill(1, &l(&[1]), 1), f(&[2]).index_fill(0, &far(), 1), f(&[2]).index_fill(0, &b(&[2]), 1),
            f(&[2]).index_fill(0, &l(&[1, 1]), 1), f(&[2]).index_fill(0, &l(&[1]), &f(&[1]));
        index_fill_: f(&[2]).index_fill_(0, &far(), 1), leaf(&[2]).index_fill_(0, &l(&[1]), 1);
        put: f(&[2]).put(&far(), &f(&[2]), false), f(&[2]).put(&b(&[2]), &f(&[2]), false), f(&[2]).put(&l(&[1]), &f(&[2]), true),
            f(&[2]).put(&l(&[1]), &l(&[1]), false);
        put_: f(&[2]).put_(&far(), &f(&[2]), false), leaf(&[2]).put_(&l(&[1]), &f(&[1]), false);
        unique_consecutive_dim: f(&[]).unique_consecutive_dim(0), f(&[2]).unique_consecutive_dim(1),
            f(&[2, 0]).unique_consecutive_dim(0);
        unique_dim: f(&[]).unique_dim(0), f(&[2]).unique_dim(-2), f(&[0, 2]).unique_dim(1);
        index_select: f(&[2]).index_select(1, &l(&[1])), f(&[2]).index_select(0, &far()), f(&[2]).index_select(0, &f(&[1]));
        take: f(&[2]).take(&far()), f(&[2]).take(&f(&[1]));
        take_along_dim: f(&[2]).take_along_dim(&l(&[2]), 1), f(&[2]).take_along_dim(&far(), 0);
        scatter: f(&[2]).scatter(1, &l(&[2]), 1), f(&[2]).scatter(0, &far(), 1), f(&[2]).scatter_(0, &far(), &f(&[2]));
        scatter_add: f(&[2]).scatter_add(1, &l(&[2]), &f(&[2])), f(&[2]).scatter_add_(0, &far(), &f(&[2]));
        scatter_reduce: f(&[2]).scatter_reduce(1, &l(&[2]), &f(&[2]), Reduce::Sum),
            f(&[2]).scatter_reduce_(0, &far(), &f(&[2]), Reduce::Amax);
        masked_fill: f(&[2]).masked_fill(&b(&[3]), 1), f(&[2]).masked_fill(&f(&[2]), 1), f(&[2]).masked_fill_(&b(&[3]), 1);
        masked_scatter: f(&[2]).masked_scatter(&b(&[3]), &f(&[2])), f(&[2]).masked_scatter_(&b(&[2]), &f(&[1]));
        masked_select: f(&[2]).masked_select(&b(&[3])), f(&[2]).masked_select(&f(&[2]));
        where_cond: b(&[2]).where_cond(&f(&[3]), 0), f(&[2]).where_cond(1, 0);
        where_cond_out: b(&[2]).where_cond_out(&f(&[2]), 0.0, &mut f(&[3]));
        embedding: f(&[2, 3]).embedding(&f(&[1])), f(&[2]).embedding(&l(&[1])), f(&[2, 3]).embedding_with(&l(&[1]), Some(2)),
            f(&[2, 3]).embedding(&far());
        embedding_bag: f(&[2, 3]).embedding_bag(&f(&[1])), f(&[2]).embedding_bag(&l(&[1, 1])), f(&[2, 3]).embedding_bag(&l(&[2]));
        embedding_sparse: f(&[2]).embedding_sparse(&l(&[1]));
        one_hot: f(&[2]).one_hot(3), far().one_hot(3), l(&[2]).one_hot(-2), l(&[2]).neg().unwrap().one_hot(-1),
            l(&[2]).one_hot(FAR);
        sort: f(&[2]).sort(1), f(&[2]).sort(-2);
        argsort: f(&[2]).argsort(1), f(&[2]).argsort_with(-2, true, true);
        topk: f(&[2]).topk(1, 1), f(&[2]).topk(3, 0), f(&[2]).topk(FAR, 0), f(&[2]).topk_with(3, 0, false, true);
        searchsorted: f(&[2, 2]).searchsorted(&f(&[3, 2])), f(&[]).searchsorted(1.0);
        bucketize: f(&[2]).bucketize(&f(&[2, 2])), f(&[2]).bucketize(&f(&[]));
        bincount: f(&[2]).bincount(), l(&[2, 2]).bincount(), l(&[2]).neg().unwrap().bincount(),
            l(&[2]).bincount_with(Some(&f(&[3])), 0), l(&[2]).bincount_with(None, FAR);
    }
}
