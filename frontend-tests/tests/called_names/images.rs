//! Pooling, convolutions, images, norms and losses.

use super::{Call, FAR, Table, b, f, far, l};
use keyway::nn::{
    self, Activation, AvgPoolOptions, ConvOptions, ConvTransposeOptions, GridOptions, InterpolateMode,
    InterpolateOptions, LpPoolOptions, MaxPoolOptions, MaxUnpoolOptions, UnfoldOptions,
};

pub fn images() -> Table {
    macro_rules! pools {
        ($($max:ident $indices:ident $avg:ident $lp:ident $mean:ident $most:ident $places:ident $un:ident [$($size:literal),+];)+) => {
            table! { $(
                $max: f(&[2]).$max(2), f(&[$($size),+]).$max(9), f(&[$($size),+]).$max(0), f(&[$($size),+]).$max(FAR),
                    f(&[$($size),+]).$max(MaxPoolOptions::new(2).padding(2)), b(&[$($size),+]).$max(2);
                $indices: f(&[2]).$indices(2), f(&[$($size),+]).$indices(9), f(&[$($size),+]).$indices(0);
                $avg: f(&[2]).$avg(2), f(&[$($size),+]).$avg(9), f(&[$($size),+]).$avg(0), l(&[$($size),+]).$avg(2),
                    f(&[$($size),+]).$avg(AvgPoolOptions::new(2).divisor_override(0));
                $lp: f(&[2]).$lp(LpPoolOptions::new(2.0, 2)), f(&[$($size),+]).$lp(LpPoolOptions::new(0.0, 2)),
                    f(&[$($size),+]).$lp(LpPoolOptions::new(2.0, 9));
                $mean: f(&[2]).$mean(2), f(&[$($size),+]).$mean(FAR), l(&[$($size),+]).$mean(2), l(&[$($size),+]).$mean(3);
                $most: f(&[2]).$most(2), f(&[$($size),+]).$most(FAR), b(&[$($size),+]).$most(2), b(&[$($size),+]).$most(3);
                $places: f(&[2]).$places(2), f(&[$($size),+]).$places(FAR), b(&[$($size),+]).$places(3);
                $un: f(&[2]).$un(&l(&[2]), 2), f(&[$($size),+]).$un(&f(&[$($size),+]), 2),
                    f(&[$($size),+]).$un(&l(&[1]), 2), f(&[$($size),+]).$un(&l(&[$($size),+]), 0),
                    f(&[$($size),+]).$un(&l(&[$($size),+]), MaxUnpoolOptions::new(FAR));
            )+ }
        };
    }
    macro_rules! convolutions {
        ($($conv:ident $act:ident $act_name:ident $transposed:ident [$($size:literal),+] $rank:literal;)+) => {
            table! { $(
                $conv: f(&[2]).$conv(&f(&[$($size),+]), None), f(&[$($size),+]).$conv(&f(&[2]), None),
                    f(&[$($size),+]).$conv(&f(&[$($size),+]), Some(&f(&[9])));
                $act: f(&[$($size),+]).$act(&f(&[$($size),+]), Some(&f(&[9])), None, Activation::Relu, ConvOptions::default()),
                    f(&[$($size),+]).$act(&f(&[2]), None, None, Activation::Relu, ConvOptions::default()),
                    f(&[$($size),+]).$act(&f(&[$($size),+]), None, Some(&f(&[9])), Activation::Relu, ConvOptions::default());
                $transposed: f(&[2]).$transposed(&f(&[$($size),+]), None), f(&[$($size),+]).$transposed(&f(&[2]), None),
                    f(&[$($size),+]).$transposed(&f(&[$($size),+]), Some(&f(&[9])));
            )+ }
        };
    }
    let mut all = pools! {
        max_pool1d max_pool1d_with_indices avg_pool1d lp_pool1d adaptive_avg_pool1d adaptive_max_pool1d
            adaptive_max_pool1d_with_indices max_unpool1d [1, 1, 4];
        max_pool2d max_pool2d_with_indices avg_pool2d lp_pool2d adaptive_avg_pool2d adaptive_max_pool2d
            adaptive_max_pool2d_with_indices max_unpool2d [1, 1, 4, 4];
        max_pool3d max_pool3d_with_indices avg_pool3d lp_pool3d adaptive_avg_pool3d adaptive_max_pool3d
            adaptive_max_pool3d_with_indices max_unpool3d [1, 1, 4, 4, 4];
    };
    all.extend(convolutions! {
        conv1d conv1d_act conv_act conv_transpose1d [2, 2, 4] 1;
        conv2d conv2d_act conv_act conv_transpose2d [2, 2, 4, 4] 2;
        conv3d conv3d_act conv_act conv_transpose3d [2, 2, 4, 4, 4] 3;
    });
    all.extend(table! {
        conv2d_with: f(&[1, 2, 4, 4]).conv2d_with(&f(&[2, 2, 1, 1]), None, ConvOptions::default().stride(0)),
            f(&[1, 2, 4, 4]).conv2d_with(&f(&[2, 2, 1, 1]), None, ConvOptions::default().groups(FAR)),
            f(&[1, 2, 4, 4]).conv2d_with(&f(&[2, 2, 1, 1]), None, ConvOptions::default().dilation(FAR)),
            f(&[1, 2, 4, 4]).conv2d_with(&f(&[2, 1, 9, 9]), None, ConvOptions::default().groups(2));
        conv_transpose2d_with:
            f(&[1, 2, 4, 4]).conv_transpose2d_with(&f(&[2, 2, 1, 1]), None, ConvTransposeOptions::default().stride(0)),
            f(&[1, 2, 4, 4]).conv_transpose2d_with(&f(&[2, 2, 1, 1]), None, ConvTransposeOptions::default().groups(3)),
            f(&[1, 2, 4, 4]).conv_transpose2d_with(&f(&[2, 2, 1, 1]), None, ConvTransposeOptions::default().output_padding(3));
        interpolate: f(&[2]).interpolate(&InterpolateOptions::size(2)),
            f(&[1, 1, 4]).interpolate(&InterpolateOptions::size(0)),
            f(&[1, 1, 4]).interpolate(&InterpolateOptions::size(FAR)),
            f(&[1, 1, 4]).interpolate(&InterpolateOptions::scale(-1.0)),
            f(&[1, 1, 4]).interpolate(&InterpolateOptions::sizes(&[1, 2])),
            l(&[1, 1, 4]).interpolate(&InterpolateOptions::size(3).mode(InterpolateMode::Area)),
            b(&[1, 1, 4]).interpolate(&InterpolateOptions::size(3).mode(InterpolateMode::Linear));
        im2col: f(&[2]).im2col(UnfoldOptions::new(2)), f(&[1, 1, 4, 4]).im2col(UnfoldOptions::new(9)),
            f(&[1, 1, 4, 4]).im2col(UnfoldOptions::new(0));
        col2im: f(&[2]).col2im(2, UnfoldOptions::new(2)), f(&[1, 4, 4]).col2im(9, UnfoldOptions::new(2)),
            f(&[1, 4, 4]).col2im(3, UnfoldOptions::new(0)), f(&[3, 4]).col2im(3, UnfoldOptions::new(2));
        grid_sample: f(&[2]).grid_sample(&f(&[2])), f(&[1, 1, 2, 2]).grid_sample(&f(&[1, 2, 2, 3])),
            l(&[1, 1, 2, 2]).grid_sample_with(&f(&[1, 2, 2, 2]), GridOptions::default());
        affine_grid: f(&[1, 2, 3]).affine_grid((1, 1, 2)), f(&[1, 2, 3]).affine_grid((1, 1, -2, 2)), f(&[2]).affine_grid(2);
        pixel_shuffle: f(&[2]).pixel_shuffle(2), f(&[1, 3, 2, 2]).pixel_shuffle(2), f(&[1, 4, 2, 2]).pixel_shuffle(0),
            f(&[1, 4, 2, 2]).pixel_shuffle(FAR);
        pixel_unshuffle: f(&[2]).pixel_unshuffle(2), f(&[1, 1, 3, 3]).pixel_unshuffle(2), f(&[1, 1, 3, 3]).pixel_unshuffle(0);
        channel_shuffle: f(&[2]).channel_shuffle(2), f(&[1, 3, 2]).channel_shuffle(2), f(&[1, 3, 2]).channel_shuffle(FAR);
        batch_norm: f(&[2]).batch_norm(None, None, None, true, 0.1, 1e-5), f(&[1, 2]).batch_norm(None, None, None, false, 0.1, 1e-5),
            f(&[2, 2]).batch_norm(None, Some(&f(&[3])), None, true, 0.1, 1e-5);
        instance_norm: f(&[2]).instance_norm(None, None),
            f(&[2, 2, 3]).instance_norm_with(None, Some(&f(&[3])), None, true, 0.1, 1e-5);
        group_norm: f(&[2]).group_norm(1, None, None), f(&[2, 3]).group_norm(2, None, None), f(&[2, 2]).group_norm(-1, None, None),
            f(&[2, 2]).group_norm(FAR, None, None), f(&[2, 2]).group_norm_with(1, Some(&f(&[3])), None, 1e-5);
        layer_norm: f(&[2]).layer_norm(3, None, None), f(&[2]).layer_norm((), None, None),
            f(&[2]).layer_norm_with(2, Some(&f(&[3])), None, 1e-5), l(&[2]).layer_norm(2, None, None);
        rms_norm: f(&[2]).rms_norm(3, None), f(&[2]).rms_norm_with(2, Some(&f(&[3])), 1e-5), l(&[2]).rms_norm(2, None);
        local_response_norm: f(&[2]).local_response_norm(2), f(&[1, 2, 2]).local_response_norm(0);
        scaled_dot_product_attention: f(&[2]).scaled_dot_product_attention(&f(&[2]), &f(&[2])),
            f(&[1, 2, 3]).scaled_dot_product_attention(&f(&[1, 2, 4]), &f(&[1, 2, 3]));
        cross_entropy: f(&[2, 3]).cross_entropy(&l(&[3])), f(&[]).cross_entropy(&l(&[])), f(&[2, 3]).cross_entropy(&l(&[2]).mul(9).unwrap()),
            l(&[2, 3]).cross_entropy(&l(&[2]));
        nll_loss: f(&[2, 3]).nll_loss(&l(&[3])), f(&[2, 3]).nll_loss(&f(&[2]));
        ctc_loss: f(&[2, 1, 3]).ctc_loss(&l(&[1]), &[3], &[1]), f(&[2, 1, 3]).ctc_loss(&f(&[1]), &[2], &[1]), f(&[2]).ctc_loss(&l(&[1]), &[2], &[1]),
            f(&[2, 1, 3]).ctc_loss(&l(&[1]).add(7).unwrap(), &[2], &[1]),
            f(&[2, 1, 3]).ctc_loss_with(&l(&[1]).add(1).unwrap(), &[2], &[1], nn::CtcLossOptions::default().reduction(nn::Reduction::BatchMean));
        mse_loss: f(&[2]).mse_loss(&f(&[3])), l(&[2]).mse_loss(&l(&[2]));
        l1_loss: f(&[2]).l1_loss(&f(&[3]));
        smooth_l1_loss: f(&[2]).smooth_l1_loss(&f(&[3])), f(&[2]).smooth_l1_loss_with(&f(&[2]), -1.0, nn::Reduction::Mean);
        huber_loss: f(&[2]).huber_loss(&f(&[3])), f(&[2]).huber_loss_with(&f(&[2]), -1.0, nn::Reduction::Mean), l(&[2]).huber_loss(&l(&[2]));
        kl_div: f(&[2]).kl_div(&f(&[3]));
        pairwise_distance: f(&[2]).pairwise_distance(&f(&[3])), f(&[]).pairwise_distance(&f(&[2])), l(&[2]).pairwise_distance(&f(&[2])),
            f(&[2]).pairwise_distance_with(&f(&[2]), f64::NAN, 1e-6, false);
        triplet_margin_loss: f(&[2]).triplet_margin_loss(&f(&[3]), &f(&[2])), f(&[2]).triplet_margin_loss(&f(&[2]), &f(&[3])),
            f(&[]).triplet_margin_loss(&f(&[]), &f(&[])), l(&[2]).triplet_margin_loss(&f(&[2]), &f(&[2])),
            f(&[2]).triplet_margin_loss_with(&f(&[2]), &f(&[2]), nn::TripletMarginOptions::default().p(f64::NAN));
        cosine_embedding_loss: f(&[2, 3]).cosine_embedding_loss(&f(&[2, 4]), &f(&[2])), f(&[]).cosine_embedding_loss(&f(&[]), &f(&[])),
            f(&[2, 3]).cosine_embedding_loss_with(&f(&[2, 3]), &f(&[2]), f64::NAN, nn::Reduction::Mean);
        margin_ranking_loss: f(&[2]).margin_ranking_loss(&f(&[3]), &f(&[2])), f(&[2]).margin_ranking_loss(&f(&[2]), &f(&[3]));
        hinge_embedding_loss: f(&[2]).hinge_embedding_loss(&f(&[3])), l(&[2]).hinge_embedding_loss(&l(&[2]));
        soft_margin_loss: f(&[2]).soft_margin_loss(&f(&[3])), f(&[2]).soft_margin_loss_with(&f(&[2]), nn::Reduction::BatchMean);
        multi_margin_loss: f(&[2, 3]).multi_margin_loss(&l(&[3])), f(&[]).multi_margin_loss(&l(&[])), f(&[2, 3]).multi_margin_loss(&far()),
            f(&[2, 3]).multi_margin_loss(&f(&[2])), f(&[2, 3]).multi_margin_loss_with(&l(&[2]), 3, 1.0, None, nn::Reduction::Mean);
        poisson_nll_loss: f(&[2]).poisson_nll_loss(&f(&[3])), f(&[2]).poisson_nll_loss_with(&f(&[2]), false, true, -1.0, nn::Reduction::Mean);
        gaussian_nll_loss: f(&[2]).gaussian_nll_loss(&f(&[3]), &f(&[2])), f(&[2]).gaussian_nll_loss(&f(&[2]), &f(&[3])),
            f(&[2]).gaussian_nll_loss(&f(&[2]), &f(&[2]).neg().unwrap());
        binary_cross_entropy: f(&[2]).binary_cross_entropy(&f(&[3]));
        binary_cross_entropy_with_logits: f(&[2]).binary_cross_entropy_with_logits(&f(&[3]));
    });
    all
}
