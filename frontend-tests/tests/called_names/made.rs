//! Functions that make tensors, and that read or move them.

use super::{Call, FAR, Table, b, f, l, leaf, of, two, wide};
use keyway::tensor::StepBy;
use keyway::{DType, Layout, MemoryFormat, Tensor};

pub fn created() -> Table {
    table! {
        new: Tensor::new(vec![vec![1.0f32], vec![]]), Tensor::new_with([1.0f32], two());
        from_vec: Tensor::from_vec(vec![1.0f32], 2), Tensor::from_vec(vec![1.0f32], -1),
            Tensor::from_vec(vec![1.0f32], (FAR, 2)), Tensor::from_vec(vec![1.0f32], (1usize << 40, 1usize << 40));
        from_slice: Tensor::from_slice(&[1.0f32], 2), Tensor::from_slice(&[1.0f32], -1);
        from_owner: Tensor::from_owner(vec![1.0f32], 2), Tensor::from_owner(vec![1.0f32], -1);
        from_blob: Tensor::from_blob(keyway::storage::Blob::from_owner(vec![1.0f32]), 2, DType::F32),
            Tensor::from_blob(keyway::storage::Blob::from_owner(vec![1.0f32]), -2, DType::F32);
        from_blob_strided: Tensor::from_blob_strided(keyway::storage::Blob::from_owner(vec![1.0f32]), 1, (1, 1), DType::F32);
        empty: Tensor::empty(-1), Tensor::empty((FAR, 1)), Tensor::empty((1usize << 40, 1usize << 40)),
            Tensor::empty_with(2, MemoryFormat::ChannelsLast), Tensor::empty_with(2, two()),
            Tensor::empty_with(2, MemoryFormat::Preserve);
        empty_strided: Tensor::empty_strided(2, (1, 1)), Tensor::empty_strided(-2, 1), Tensor::empty_strided(2, -1),
            Tensor::empty_strided((1usize << 40, 1usize << 40), (1, 1)),
            Tensor::empty_strided_with(2, 1, MemoryFormat::Contiguous);
        resize_: f(&[2]).resize_(-1), leaf(&[2]).resize_(3);
        set_: f(&[2]).set_(&l(&[2]));
        full: Tensor::full(-1, 1.0), Tensor::full((1usize << 40, 1usize << 40), 1), Tensor::full_with(1, 300, DType::U8),
            Tensor::full_with(1, 1, two());
        zeros: Tensor::zeros(-1), Tensor::zeros((FAR, 2)), Tensor::zeros_with(2, MemoryFormat::ChannelsLast);
        ones: Tensor::ones(-1), Tensor::ones((1usize << 40, 1usize << 40)), Tensor::ones_with(2, two());
        empty_like: f(&[2]).empty_like_with(MemoryFormat::ChannelsLast), f(&[2]).empty_like_with(two());
        full_like: f(&[2]).full_like_with(1, MemoryFormat::ChannelsLast), of(&[1], DType::U8).full_like(300);
        ones_like: f(&[2]).ones_like_with(MemoryFormat::ChannelsLast);
        zeros_like: f(&[2]).zeros_like_with(MemoryFormat::ChannelsLast);
        new_empty: f(&[2]).new_empty(-1), f(&[2]).new_empty((1usize << 40, 1usize << 40));
        new_full: f(&[2]).new_full(-1, 1), of(&[1], DType::U8).new_full(1, 300);
        new_zeros: f(&[2]).new_zeros(-1), f(&[2]).new_zeros((1usize << 40, 1usize << 40));
        new_ones: f(&[2]).new_ones(-1), f(&[2]).new_ones((FAR, 1));
        arange: Tensor::arange(0, i64::MAX), Tensor::arange(0.0, f64::NAN), Tensor::arange_with(0, 3, 0, ()),
            Tensor::arange_with(0, 3, -1, ()), Tensor::arange_with(0, 3, 1, two()), Tensor::arange_with(0, 3, 1, DType::BOOL);
        arange_: b(&[2]).arange_(0, 1), leaf(&[2]).arange_(0, 1);
        linspace: Tensor::linspace(0.0, 1.0, FAR), Tensor::linspace_with(0.0, 1.0, 2, DType::BOOL),
            Tensor::linspace_with(0.0, 1.0, 2, two());
        linspace_: leaf(&[2]).linspace_(0.0, 1.0);
        logspace: Tensor::logspace(0.0, 1.0, FAR), Tensor::logspace_with(0.0, 1.0, 2, 10.0, two());
        eye: Tensor::eye(FAR), Tensor::eye(1 << 40), Tensor::eye_with(2, 2, two());
        tril_indices: Tensor::tril_indices(FAR, FAR), Tensor::tril_indices_with(2, 2, 0, two());
        triu_indices: Tensor::triu_indices(FAR, FAR), Tensor::triu_indices_with(2, 2, 0, two());
        rand: Tensor::rand(-1), Tensor::rand_with(2, DType::I64), Tensor::rand((1usize << 40, 1usize << 40));
        rand_like: l(&[2]).rand_like(), f(&[2]).rand_like_with(MemoryFormat::ChannelsLast);
        uniform_: l(&[2]).uniform_(0.0, 1.0), f(&[2]).uniform_(1.0, 0.0), leaf(&[2]).uniform_(0.0, 1.0);
        randn: Tensor::randn(-1), Tensor::randn_with(2, DType::I64), Tensor::randn_with(2, two());
        randn_like: l(&[2]).randn_like(), f(&[2]).randn_like_with(MemoryFormat::ChannelsLast);
        normal_: l(&[2]).normal_(0.0, 1.0), f(&[2]).normal_(0.0, -1.0);
        randint: Tensor::randint(3, 3, 2), Tensor::randint(0, 3, -2), Tensor::randint_with(0, 3, 2, DType::BOOL),
            Tensor::randint_with(0, 100_000, 3, DType::F16), Tensor::randint_with(0, 300, 2, DType::U8);
        randint_like: f(&[2]).randint_like(3, 3), f(&[2]).randint_like_with(0, 3, MemoryFormat::ChannelsLast);
        random_: f(&[2]).random_(3, 3), leaf(&[2]).random_(0, 3);
        randperm: Tensor::randperm(FAR), Tensor::randperm(1 << 50), Tensor::randperm_with(2, two()),
            Tensor::randperm_with(2, MemoryFormat::ChannelsLast);
        bernoulli: l(&[2]).bernoulli();
        bernoulli_: f(&[2]).bernoulli_(2.0), f(&[2]).bernoulli_(&f(&[3])), leaf(&[2]).bernoulli_(0.5);
        multinomial: f(&[2]).multinomial(3), f(&[2, 2, 2]).multinomial(1), l(&[2]).multinomial(1),
            f(&[2]).multinomial_with(FAR, true), f(&[2]).multinomial(0);
        dropout: f(&[2]).dropout(2.0, true), l(&[2]).dropout(0.5, true);
        dropout1d: f(&[2]).dropout1d(0.5, true), f(&[2, 3]).dropout1d(2.0, true);
        dropout2d: f(&[2]).dropout2d(0.5, true), l(&[2, 3, 4]).dropout2d(0.5, true);
        dropout3d: f(&[2]).dropout3d(0.5, true);
        alpha_dropout: f(&[2]).alpha_dropout(2.0, true), l(&[2]).alpha_dropout(0.5, true);
        feature_alpha_dropout: f(&[2]).feature_alpha_dropout(0.5, true), l(&[2, 2]).feature_alpha_dropout(0.5, true);
        from_components: Tensor::from_components(Layout::STRIDED, &[2], DType::F32, &[], &[]),
            Tensor::from_components(Layout::STRIDED, &[FAR], DType::F32, &[], &[]);
    }
}

pub fn read() -> Table {
    table! {
        dim: f(&[2]).dim(1), f(&[2]).dim(-2), f(&[2]).dim(FAR);
        dims1: f(&[2, 3]).dims1();
        dims2: f(&[2]).dims2();
        dims3: f(&[2]).dims3();
        dims4: f(&[2]).dims4();
        dims5: f(&[2]).dims5();
        to_vec: f(&[2]).to_vec::<i64>();
        to_vec1: f(&[2, 3]).to_vec1::<f32>(), f(&[2]).to_vec1::<i64>();
        to_vec2: f(&[2]).to_vec2::<f32>(), f(&[2, 3]).to_vec2::<i64>();
        to_vec3: f(&[2]).to_vec3::<f32>(), f(&[2, 3, 4]).to_vec3::<i64>();
        item: f(&[2]).item::<f32>(), f(&[]).item::<i64>();
        to_vec_f64: wide().to_vec_f64();
        to_bytes: wide().to_bytes();
        accessor: f(&[2]).accessor::<f32, 2>().map(drop), f(&[2]).accessor::<f64, 1>().map(drop);
        accessor_ref: f(&[2]).accessor_ref::<f32, 2>().map(drop);
        accessor_mut: f(&[2]).accessor_mut::<f32, 2>().map(drop), leaf(&[2]).accessor_mut::<f32, 1>().map(drop);
        as_slice: f(&[2]).as_slice::<f64>().map(drop);
        as_slice_mut: f(&[2]).as_slice_mut::<f64>().map(drop), leaf(&[2]).as_slice_mut::<f32>().map(drop);
        as_ndarray: f(&[2]).as_ndarray::<f64>().map(drop);
        as_ndarray_mut: f(&[2]).as_ndarray_mut::<f64>().map(drop), leaf(&[2]).as_ndarray_mut::<f32>().map(drop);
        to_ndarray: f(&[2]).to_ndarray::<i64>();
        to_dlpack: leaf(&[2]).to_dlpack();
        to: f(&[2]).to(MemoryFormat::ChannelsLast), f(&[2]).to((DType::F32, DType::F64)), f(&[2]).to("nowhere"),
            f(&[2]).to("cpu:x");
        to_device: f(&[2]).to_device(keyway::Device::new("cpu", 7).unwrap());
        contiguous_in: f(&[2]).contiguous_in(MemoryFormat::ChannelsLast);
        copy_with: f(&[2]).copy_with(MemoryFormat::ChannelsLast);
        pin_memory_for: f(&[2]).pin_memory_for(keyway::Device::new("nowhere", 0).unwrap());
        to_device_non_blocking: f(&[2]).to_device_non_blocking(keyway::Device::new("cpu", 7).unwrap());
        sparse_coo: Tensor::sparse_coo(&f(&[2]), &f(&[2]), 2), Tensor::sparse_coo(&l(&[1, 2]), &f(&[2]), -2);
        sparse_csr: Tensor::sparse_csr(&f(&[2]), &l(&[2]), &f(&[2]), (2, 2)), Tensor::sparse_csr(&l(&[2]), &l(&[2]), &f(&[2]), -2);
        to_sparse: f(&[2]).to_sparse_with(3);
        to_sparse_csr: f(&[2]).to_sparse_csr();
        detach_: leaf(&[2]).narrow(0, 0, 1).unwrap().detach_();
        component: f(&[2]).component("values");
        to_layout: f(&[2]).to_layout(Layout::CHANNELS_LAST),
            f(&[2]).to_layout_with(Layout::STRIDED, &keyway::LayoutOptions::new().set("block", 16));
        copy_: f(&[2]).copy_(&f(&[3])), leaf(&[2]).copy_(&f(&[2]));
        fill_: of(&[2], DType::U8).fill_(300), leaf(&[2]).fill_(1);
        zero_: leaf(&[2]).zero_();
        requires_grad_: l(&[2]).requires_grad_(true), leaf(&[2]).mul(2).unwrap().requires_grad_(false);
        retain_grad: f(&[2]).retain_grad();
        set_grad: leaf(&[2]).set_grad(f(&[3]));
        register_hook: f(&[2]).register_hook(|_| Ok(None)).map(drop);
        backward: f(&[]).backward(), leaf(&[2]).mul(2).unwrap().backward();
        indices: f(&[2]).indices();
        values: f(&[2]).values();
        nnz: f(&[2]).nnz();
        sparse_dim: f(&[2]).sparse_dim();
        dense_dim: f(&[2]).dense_dim();
        is_coalesced: f(&[2]).is_coalesced();
        crow_indices: f(&[2]).crow_indices();
        col_indices: f(&[2]).col_indices();
        i: f(&[2]).i(2), f(&[2]).i(-3), f(&[2]).i(FAR), f(&[2]).i((0, 0)), f(&[2]).i(StepBy(.., 0)), f(&[2]).i(StepBy(.., -1)),
            f(&[2]).i(f(&[1])), f(&[2]).i(l(&[1]).mul(7).unwrap()), f(&[2]).i(b(&[3])),
            f(&[2, 3]).i((0, &l(&[1]).mul(9).unwrap()));
    }
}
